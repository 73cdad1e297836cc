"""What is found in a session of tests, in all processes of xdist together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tensortrail.inert import inert
from tensortrail.tracer.exports.closing import commands, has_patch
from tensortrail.tracer.exports.finding_lines import Line, in_order, lines_of, shown
from tensortrail.tracer.reading.findings_of_run import findings
from tensortrail.tracer.reading.timeline import RunTimeline

KEY = "tensortrail"
"""Under which a process of xdist sends what it found."""
MOST_LINES = 20


@dataclass
class FoundInTests:
    directory: str = ""
    """Where the trail is kept; empty if it is not."""
    events: int = 0
    lines: list[Line] = field(default_factory=list)
    patch: bool = False
    trouble: list[str] = field(default_factory=list)

    def end(self, opened: Callable[[], RunTimeline], events: int = 0) -> None:
        """The run is over but for its end: the rules judge it."""
        self.events += events
        try:
            found = findings(opened())
        except Exception as error:
            self.trouble.append(f"the trail could not be read: {type(error).__name__}: {error}")
            return
        self.lines = in_order([*self.lines, *lines_of(found.findings)])
        self.patch |= any(map(has_patch, found.findings))
        self.trouble += found.problems

    def sent(self) -> dict[str, Any]:
        """To the process that xdist was started in."""
        return {**vars(self), "lines": [list(each) for each in self.lines]}

    def received(self, node: Any, directory: str) -> None:
        """From a process of xdist."""
        sent = getattr(node, "workeroutput", {}).get(KEY)
        if sent is None:
            return
        self.directory = directory
        self.events += sent["events"]
        self.lines = in_order([*self.lines, *(Line(*each) for each in sent["lines"])])
        self.patch |= sent["patch"]
        self.trouble += sent["trouble"]

    def fail(self, session: pytest.Session) -> None:
        """A session that went well fails if an error is among the findings."""
        if self._errors() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def write(self, reporter: Any, check: bool) -> None:
        for line in shown(self.lines, MOST_LINES, reporter.hasmarkup):
            reporter.write_line(line)
        for line in self._after(check):
            reporter.write_line(inert(line))

    def _after(self, check: bool) -> Iterator[str]:
        if self.directory:
            yield from commands(self.patch, self.directory)
        yield from (f"tensortrail: {each}" for each in dict.fromkeys(self.trouble))
        if check and (errors := self._errors()):
            codes = ", ".join(dict.fromkeys(each.code for each in errors))
            yield f"--tensortrail-check failed: {codes}"

    def _errors(self) -> list[Line]:
        return [each for each in self.lines if each.is_error]
