"""`tensortrail trace`: run a program as Python would, and record what its tensors did."""

from __future__ import annotations

import argparse
import atexit
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tensortrail.cli.console import fail, is_terminal, say
from tensortrail.cli.ending import Ending
from tensortrail.cli.exit_codes import FAILED, FOUND
from tensortrail.cli.extras import install, lacking
from tensortrail.cli.launchers import for_command, instead
from tensortrail.cli.unknown_words import Parser
from tensortrail.collector import made_to_stay

if TYPE_CHECKING:
    from tensortrail.tracer.entrances.script import Program
    from tensortrail.tracer.recording.options import Options
    from tensortrail.tracer.recording.session import Session
    from tensortrail.tracer.rehearsal.devices.spec import Spec

USAGE = """tensortrail trace [options] script.py [arguments ...]
       tensortrail trace [options] -m module [arguments ...]"""


def parser() -> argparse.ArgumentParser:
    made = Parser(
        prog="tensortrail trace",
        usage=USAGE,
        allow_abbrev=False,  # `split` knows whole names only
        description="Run a program and record which tensor is where, and who put it there. The "
        "program behaves as it does without: same results, exceptions and exit code.",
    )
    add = made.add_argument
    add("-m", dest="module", action="store_true", help="the program is a module, as in python -m")
    add("--directory", metavar="DIR", help="the folder for the trail (.tensortrail/<time>-<pid>)")
    add("--rehearse", metavar="DEVICES", help="simulate these GPUs: cuda, cuda:2, cuda:2x24GiB")
    focus = "record only these tensors: device=cuda*, name=embed, size>=1MB; separate with commas"
    add("--focus", default="", metavar="WHAT", help=focus)
    operations = "also record every operation, in these steps: 3 or 3-5"
    add("--ops", default="", metavar="STEPS", help=operations)
    add("--max-size", default="1GB", metavar="SIZE", help="the largest trail of a process (1GB)")
    add("--check", action="store_true", help="exit with 1 if the run has findings")
    add("--guard", action="store_true", help="stop (exit 3) before a step that destroys data")
    verify = "check each checkpoint after it is written, as tensortrail doctor does"
    add("--verify-saves", action="store_true", help=verify)
    audit = "read the values of weights, to report which change, when and at which line"
    add("--audit", action="store_true", help=audit)
    add("--select", default="", metavar="CODES", help="with --check: only these rules")
    add("--quiet", action="store_true", help="print no summary at the end")
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
    if "-c" in ours:
        fail("a recorded program is a file or a module (-m): save the code as one")
        return FAILED
    options = parser().parse_args(ours)
    if not program:
        fail("nothing to run", *_swallowed(options))
        for line in f"usage: {USAGE}".splitlines():
            say(f"  {line.strip()}")
        return FAILED
    if not options.module and not os.path.lexists(program[0]):  # known before torch is imported
        fail(f"{program[0]}: cannot be read: No such file or directory", *for_command(program))
        return FAILED
    if package := lacking("trace"):
        fail(f"{package} is not installed here", f"a recording needs it: {install('trace')}")
        return FAILED
    return _start(options, program)


def _swallowed(options: argparse.Namespace) -> Iterator[str]:
    """The program may have been taken for the value of an option."""
    given = options.rehearse or ""
    if given.endswith(".py"):
        yield f"--rehearse needs devices: tensortrail trace --rehearse cuda {given}"


def _start(options: argparse.Namespace, program: list[str]) -> int:
    from tensortrail.tracer.recording.progress import Progress

    name, *arguments = program
    try:
        with made_to_stay():
            loaded, running = _begun(options, program)
    except Refused as refused:
        fail(*map(str, refused.args))
        return FAILED
    except SyntaxError as error:
        sys.excepthook(type(error), error.with_traceback(None), None)
        return FOUND
    if command := instead(name, options.module):
        say(f"tensortrail: {name} starts each rank as a process of its own, which is not recorded")
        say(f"  to record them: {command}")
    if is_terminal(sys.stderr) and not options.quiet:
        Progress(running.recorder.writer, sys.stderr)
    ending = Ending(running, options)
    # Registered before the program can register anything: it runs after all of the program's own.
    atexit.register(ending.finish)
    with ending:
        loaded.run(arguments)
    return 0


def _asked(options: argparse.Namespace) -> Options:
    """What the options ask of the recording; an error of theirs is raised."""
    from tensortrail.cli.recorded_run import codes_in
    from tensortrail.tracer.recording.options import options_from

    codes_in(options.select)
    asked = options_from(
        focus=options.focus,
        max_size=options.max_size,
        ops=options.ops,
        rehearse=options.rehearse or "",
        guard=options.guard,
        verify=_judge() if options.verify_saves else None,
        audit=options.audit,
    )
    _tell_of_no_devices(asked.rehearse)
    return asked


def _tell_of_no_devices(spec: Spec | None) -> None:
    from tensortrail.tracer.rehearsal.devices.spec import VISIBLE

    if spec is not None and not spec.count:
        say(f"tensortrail: {VISIBLE} names no GPU, so none is simulated")
        say("  to simulate one all the same: --rehearse cuda:1")


def _judge() -> Callable[[str], Mapping[str, Any]]:
    from tensortrail.doctor.checkpoint.after_save import judged

    return judged


class Refused(Exception):
    """What was asked cannot be recorded; with the advice, if there is some."""


def _begun(options: argparse.Namespace, program: list[str]) -> tuple[Program, Session]:
    from tensortrail.config import ConfigError
    from tensortrail.tracer.entrances import script as programs
    from tensortrail.tracer.events.focus import FocusError
    from tensortrail.tracer.recording.begin import begin
    from tensortrail.tracer.rehearsal.devices.spec import SpecError

    try:
        asked = _asked(options)
        loaded = programs.module(program[0]) if options.module else programs.script(program[0])
        return loaded, begin(options.directory, asked, argv=program)
    except (ConfigError, FocusError, SpecError, programs.NoProgram) as error:
        raise Refused(error) from error
    except OSError as error:
        what = f"{error.filename or options.directory}: {error.strerror or error}"
        advice = "the trail needs a directory it can write into: --directory DIR"
        raise Refused(what, advice) from error
