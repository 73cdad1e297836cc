"""`tensortrail trace`: run a program as Python would, and record what its tensors did."""

from __future__ import annotations

import argparse
import atexit
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tensortrail.cli.console import fail, say, wants_color
from tensortrail.cli.launchers import instead
from tensortrail.cli.suggestions import Parser
from tensortrail.tracer.identity.unrecorded_frames import without_our_frames
from tensortrail.tracer.recording.stop import Stopped

if TYPE_CHECKING:
    from tensortrail.tracer.recording.session import Session

USAGE = """tensortrail trace [options] script.py [arguments ...]
       tensortrail trace [options] -m module [arguments ...]"""
FAILED, FOUND, STOPPED = 2, 1, 3


def parser() -> argparse.ArgumentParser:
    made = Parser(
        prog="tensortrail trace",
        usage=USAGE,
        description="Run a program and record which tensor is where, and who put it there. The "
        "program behaves as without: same results, exceptions and exit code.",
    )
    add = made.add_argument
    add("-m", dest="module", action="store_true", help="the program is a module, as in python -m")
    add("--directory", metavar="DIR", help="where the trail goes (.tensortrail/<time>-<pid>)")
    add("--rehearse", metavar="DEVICES", help="simulate these: cuda, cuda:2, cuda:2x24GiB")
    add("--focus", default="", metavar="WHAT", help="device=cuda*, name=embed, size>=1MB; commas")
    add("--ops", default="", metavar="STEPS", help="every operation too, in these steps: 3 or 3-5")
    add("--max-size", default="1GB", metavar="SIZE", help="of each process's trail (1GB)")
    add("--check", action="store_true", help="exit with 1 if the run shows a risk")
    add("--guard", action="store_true", help="stop it (exit 3) before a step that destroys data")
    verify = "judge each checkpoint when it was written, as tensortrail doctor does"
    add("--verify-saves", action="store_true", help=verify)
    add("--audit", action="store_true", help="read the values of weights: who changed which, when")
    add("--select", default="", metavar="CODES", help="with --check: only these rules")
    add("--quiet", action="store_true", help="no summary at the end")
    add("--color", choices=("auto", "always", "never"), default="auto")
    return made


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Our options, and the program with its arguments, which may look like options of ours."""
    valued = {name for a in parser()._actions if a.nargs is None for name in a.option_strings}
    place = 0
    while place < len(arguments) and arguments[place].startswith("-") and arguments[place] != "-":
        if arguments[place] == "--":
            place += 1
            break
        if arguments[place] == "-m":  # what follows is the module and its own
            return list(arguments[: place + 1]), list(arguments[place + 1 :])
        place += 2 if arguments[place] in valued else 1
    return [each for each in arguments[:place] if each != "--"], list(arguments[place:])


def main(arguments: Sequence[str]) -> int:
    ours, program = split(arguments)
    options = parser().parse_args(ours)
    if not program:
        fail("nothing to run", *_swallowed(options))
        for line in f"usage: {USAGE}".splitlines():
            say(f"  {line.strip()}")
        return FAILED
    if not options.module and not os.path.lexists(program[0]):  # known before torch is imported
        fail(f"{program[0]}: cannot be read: No such file or directory")
        return FAILED
    if importlib.util.find_spec("torch") is None:
        fail("torch is not installed here", "a recording needs it: pip install tensortrail[trace]")
        return FAILED
    return _start(options, program)


def _swallowed(options: argparse.Namespace) -> Iterator[str]:
    """The program may have been taken for the value of an option."""
    given = options.rehearse or ""
    if given.endswith(".py"):
        yield f"--rehearse needs devices: tensortrail trace --rehearse cuda {given}"


def _start(options: argparse.Namespace, program: list[str]) -> int:
    from tensortrail.cli.report import chosen
    from tensortrail.config import ConfigError
    from tensortrail.doctor.checkpoint.after_save import judged
    from tensortrail.tracer.entrances import script as programs
    from tensortrail.tracer.events.focus import FocusError, parse_focus, parse_size, parse_steps
    from tensortrail.tracer.recording import session
    from tensortrail.tracer.recording.progress import Progress
    from tensortrail.tracer.rehearsal.devices.spec import SpecError, parse_spec

    name, *arguments = program
    try:
        chosen(options.select)
        focus = parse_focus(options.focus)
        limit = parse_size(options.max_size)
        steps = parse_steps(options.ops)
        spec = parse_spec(options.rehearse) if options.rehearse else None
        loaded = programs.module(name) if options.module else programs.script(name)
        running = session.begin(
            options.directory,
            focus,
            limit,
            argv=program,
            steps=steps,
            rehearse=spec,
            guard=options.guard,
            verify=judged if options.verify_saves else None,
            audit=options.audit,
        )
    except (ConfigError, FocusError, SpecError, programs.NoProgram) as error:
        fail(str(error))
        return FAILED
    except OSError as error:
        fail(f"{error.filename or options.directory}: {error.strerror or error}",
             "the trail needs a directory it can write into: --directory DIR")  # fmt: skip
        return FAILED
    except SyntaxError as error:
        sys.excepthook(type(error), error.with_traceback(None), None)
        return FOUND
    if command := instead(name, options.module):
        say(f"tensortrail: {name} starts each rank as a process of its own, which is not recorded")
        say(f"  to record them: {command}")
    if not options.quiet:
        Progress(running.recorder.writer, sys.stderr)
    ending = Ending(running, options)
    # Registered before the program can register anything: it runs after all of the program's own.
    atexit.register(ending.finish)
    try:
        loaded.run(arguments)
    except SystemExit as leaving:
        ending.code = leaving.code
        raise
    except Stopped as stop:
        ending.code = STOPPED
        _told(stop, running, wants_color(options.color, sys.stderr))
        sys.exit(STOPPED)
    except BaseException as error:
        ending.code = 1
        ending.interrupted = type(error) is KeyboardInterrupt
        explained = _told(error, running, wants_color(options.color, sys.stderr))
        if isinstance(error, Exception) and not explained:
            ending.error = type(error).__name__
        # The interpreter goes on as after any uncaught exception; it was printed already.
        sys.excepthook = lambda *_: None
        raise
    return 0


def _told(error: BaseException, running: Session, color: bool) -> bool:
    """The traceback without frames of ours, and the explanation under it, if there is one."""
    text = "" if isinstance(error, Stopped) else running.explained(error, color=color)
    without_our_frames(error)
    sys.excepthook(type(error), error, error.__traceback__)
    if text:
        sys.stderr.flush()
        sys.stderr.write("\n" + text)
        sys.stderr.flush()
    return bool(text)


class Ending:
    """What is left to do when the program, its threads and its exit handlers are through."""

    def __init__(self, running: Session, options: argparse.Namespace) -> None:
        self._running = running
        self._options = options
        self._pid = os.getpid()
        self.code: Any = 0
        self.interrupted = False
        self.error = ""
        """The class of the exception that ended the program, if nothing explained it."""

    def finish(self) -> None:
        if os.getpid() != self._pid:
            return  # a forked child
        running = self._running
        running.stop()
        if running.header.get("rank") not in (None, 0):
            return
        if trouble := running.trouble:
            say(f"tensortrail: {trouble}")
        found = self._close() if self._options.check or not self._options.quiet else 0
        early = running.stop_early
        stopped = early is not None and early.stopped  # elsewhere than in the main thread
        if (stopped or (self._options.check and found)) and self.code in (0, None):
            sys.stdout.flush()
            sys.stderr.flush()
            # The only way left to change the code: everything else has run.
            os._exit(STOPPED if stopped else FOUND)
        if self.interrupted:
            # The interpreter dies of its interrupt if the last code it ran from text was stopped
            # by one. What was imported here may have run some.
            with suppress(KeyboardInterrupt):
                exec("raise KeyboardInterrupt")

    def _close(self) -> int:
        from tensortrail.cli.report import findings_of
        from tensortrail.config import ConfigError
        from tensortrail.reporters import render
        from tensortrail.tracer.exports.closing import closing
        from tensortrail.tracer.reading.timeline import open_run
        from tensortrail.tracer.reading.verified_saves import told_of_saves
        from tensortrail.tracer.trail.reader import NotATrail

        try:
            timeline = open_run(self._running.directory)
            report = findings_of(timeline, self._options.select)
        except (NotATrail, ConfigError, OSError) as error:
            say(f"tensortrail: {error}")
            return 0
        color = wants_color(self._options.color, sys.stderr)
        if self._options.verify_saves and not self._options.quiet:
            for line in told_of_saves(timeline):
                say(f"tensortrail: {line}")
        if self._options.audit and not self._options.quiet:
            for line in self._running.audit.told():
                say(f"tensortrail: {line}")
        if not self._options.quiet:
            shown = os.path.relpath(self._running.directory)
            sys.stderr.write(closing(timeline, report.findings, shown, color, self.error))
        if self._options.check and report.findings:
            sys.stderr.write(render("text", report, color=color) + "\n")
        return len(report.findings)
