"""The command line: one small file a command, each imported when asked for."""

from __future__ import annotations

import atexit
import errno
import gc
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from tensortrail.cli.exit_codes import CLEAN, FAILED, INTERRUPTED

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def program() -> NoReturn:
    """The whole process: `main`, and its end."""
    checks = sys.argv[1:2] == ["check"]
    if checks:
        gc.disable()  # its trees need none, and it ends soon
    code = main()
    if checks and not (sys.getprofile() or sys.gettrace()):
        _end(code)
    sys.exit(code)


def _end(code: int) -> NoReturn:
    """End without freeing thousands of syntax trees one by one, which takes a tenth of a check."""
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        sys.exit(code)  # as the interpreter would tell of it
    os._exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["trace"]:
        # Out of the `try` below: what the traced program raises is its own.
        from tensortrail.cli.trace import main as trace

        return trace(arguments[1:])
    _open_what_is_closed()
    try:
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_the_rest()  # whoever read our output has enough
        return FAILED
    except Exception as error:
        if os.environ.get("TENSORTRAIL_DEBUG"):
            raise
        _tell_of(error)
        return FAILED


def _tell_of(error: Exception) -> None:
    from tensortrail.cli.console import fail

    if isinstance(error, OSError) and error.errno in _NO_ROOM and error.filename is None:
        _drop_the_rest()
        fail(f"the output cannot be written: {error.strerror}")
    elif hint := _how_to_get(error):
        fail(f"{error}, which this command needs", hint)
    else:
        fail(
            f"internal error: {type(error).__name__}: {error}",
            "this is a defect of tensortrail: please report it with the output of the same "
            "command run with TENSORTRAIL_DEBUG=1",
        )


def _open_what_is_closed() -> None:
    """Python has no stream for a standard output that is closed, and would print errors to the
    other one."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _drop_the_rest() -> None:
    """Python must not complain of it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _how_to_get(error: Exception) -> str:
    """The extra that a missing package belongs to; "" for any other error."""
    if not isinstance(error, ModuleNotFoundError):
        return ""
    from tensortrail.cli.extras import how_to_get

    return how_to_get((error.name or "").partition(".")[0])


def _run(arguments: list[str]) -> int:
    from tensortrail.cli.parser import parser
    from tensortrail.config import ConfigError

    if not arguments or arguments == ["help"]:
        parser().print_help()
        return CLEAN if arguments else FAILED
    options = parser(arguments[0]).parse_args(arguments)
    try:
        command = importlib.import_module(f"tensortrail.cli.{options.command}")
        return int(command.run(options))
    except ConfigError as error:
        from tensortrail.cli.console import fail

        fail(str(error))
        return FAILED
