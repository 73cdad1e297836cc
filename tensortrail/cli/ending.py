"""What `tensortrail trace` does when the program that it runs is through."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tensortrail.cli.console import say, wants_color
from tensortrail.cli.exit_codes import FOUND, STOPPED
from tensortrail.files import from_here
from tensortrail.rules.runs.cause_told import CauseTold
from tensortrail.standard_error import write_beside
from tensortrail.tracer.identity.errors_behind import is_failure
from tensortrail.tracer.identity.unrecorded_frames import without_our_frames
from tensortrail.tracer.recording.stop import Stopped
from tensortrail.tracer.rehearsal.lacks import Lacking
from tensortrail.tracer.trail.outcome import how_ended

if TYPE_CHECKING:
    from tensortrail.findings import Finding, Report
    from tensortrail.tracer.reading.timeline import RunTimeline
    from tensortrail.tracer.recording.session import Session


class Ending:
    """What is left to do when the program, its threads and its exit handlers are through."""

    def __init__(self, running: Session, options: Namespace) -> None:
        self._running = running
        self._options = options
        self._pid = os.getpid()
        self.code: Any = 0
        self.interrupted = False
        self.ended = ""
        """The class of the exception that ended the program, if nothing explained it."""
        self._explained = False

    def __enter__(self) -> Ending:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """The program ended; what ended it goes on as after any uncaught exception."""
        if error is not None:
            self._running.ended_by(how_ended(error), error)
        if isinstance(error, SystemExit):
            self.code = error.code
        elif isinstance(error, Stopped):
            self.code = STOPPED
            self._shows(error)
            sys.exit(STOPPED)
        elif error is not None:
            self.code = 1
            self.interrupted = type(error) is KeyboardInterrupt
            self._explained = self._shows(error)
            if is_failure(error) and not self._explained:
                self.ended = _unexplained(error)
            sys.excepthook = lambda *_: None  # it was printed already

    def finish(self) -> None:
        if os.getpid() != self._pid:
            return  # a forked child
        running = self._running
        running.leaves_children()
        running.stop()
        if running.header.get("rank") not in (None, 0):
            return
        if trouble := running.trouble:
            say(f"tensortrail: {trouble}")
        found = self._close() if self._options.check or not self._options.quiet else 0
        early = running.stop_early
        stopped = early is not None and early.stopped  # elsewhere than in the main thread
        if (stopped or (self._options.check and found)) and self.code in (0, None):
            for stream in (sys.stdout, sys.stderr):
                with suppress(AttributeError, OSError, ValueError):  # closed, or full
                    stream.flush()
            # The only way left to change the code: everything else has run.
            os._exit(STOPPED if stopped else FOUND)
        if self.interrupted:
            # The interpreter dies of its interrupt if the last code it ran from text was stopped
            # by one. What was imported here may have run some.
            with suppress(KeyboardInterrupt):
                exec("raise KeyboardInterrupt")

    def _shows(self, error: BaseException) -> bool:
        """The traceback without frames of ours, and the explanation under it, if there is one."""
        color = wants_color(self._options.color, sys.stderr)
        text = (
            ""
            if isinstance(error, Stopped)
            else self._running.explanations.explained(error, color=color, ends=True)
        )
        without_our_frames(error)
        sys.excepthook(type(error), error, error.__traceback__)
        if text:
            write_beside("\n" + text)
        return bool(text)

    def _close(self) -> int:
        """Tell what the run comes to; how many findings that is."""
        from tensortrail.cli.recorded_run import findings_of
        from tensortrail.config import ConfigError
        from tensortrail.reporters import render
        from tensortrail.tracer.reading.timeline import open_run
        from tensortrail.tracer.trail.reader import NotATrail

        try:
            timeline = open_run(self._running.directory)
            report = findings_of(timeline, self._options.select)
        except (NotATrail, ConfigError, OSError) as error:
            say(f"tensortrail: {error}")
            return 0
        color = wants_color(self._options.color, sys.stderr)
        if not self._options.quiet:
            self._sum_up(timeline, report, color)
        if self._options.check and report.findings:
            write_beside(render("text", report, color=color) + "\n")
        return len(report.findings)

    def _sum_up(self, timeline: RunTimeline, report: Report, color: bool) -> None:
        from tensortrail.tracer.exports.closing import closing

        for line in self._lines_before(timeline, report):
            say(f"tensortrail: {line}")
        shown = from_here(self._running.directory)
        told = self._told(report) if self._explained else None
        write_beside(closing(timeline, report.findings, shown, color, self.ended, told))

    def _told(self, report: Report) -> list[Finding]:
        """The findings that the explanation gave, or the one that its own cause became."""
        of_cause = (each for each in report.findings if each.code == CauseTold.code)
        return [*self._running.explanations.findings, *of_cause]

    def _lines_before(self, timeline: RunTimeline, report: Report) -> Iterator[str]:
        """What was asked for beside the findings, and what went wrong in looking for them."""
        from tensortrail.tracer.reading.verified_saves import told_of_saves

        if self._options.verify_saves:
            yield from told_of_saves(timeline)
        if self._options.audit:
            yield from self._running.audit.told()
        yield from (each for each in report.problems if each not in timeline.trouble)


def _unexplained(error: BaseException) -> str:
    kind = type(error).__name__
    if isinstance(error, Lacking):
        return f"{kind} ended the rehearsal, not the program: a real GPU has what is asked for here"
    return f"the program ended with {kind}, which is not explained by this run"
