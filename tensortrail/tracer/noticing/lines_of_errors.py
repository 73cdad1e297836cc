"""The user's line at which an operation failed, also where the compiler traced it."""

from __future__ import annotations

import re
from traceback import walk_tb

from tensortrail.tracer.identity.sites import OWNERS, USER, Place, function_name

_USER_CODE = re.compile(r'from user code:.*?\n\s+File "([^"\n]+)", line (\d+), in (\S+)', re.DOTALL)


def line_in_compiled(error: BaseException) -> Place | None:
    """The user's innermost line in the function that the compiler traced."""
    found = _USER_CODE.search(str(error))
    if found is None:
        return None
    frames = re.findall(r'File "([^"\n]+)", line (\d+), in (\S+)', str(error)[found.start() :])
    own = [each for each in frames if OWNERS[each[0]] == USER]
    file, line, function = own[-1] if own else frames[-1]
    return file, int(line), function


def last_line(error: BaseException) -> Place | None:
    """The user's innermost line that the exception came through."""
    return next((each for each in reversed(_places(error)) if OWNERS[each[0]] == USER), None)


def innermost(error: BaseException) -> Place | None:
    """The line that raised, of whatever library it is."""
    return next(reversed(_places(error)), None)


def _places(error: BaseException) -> list[Place]:
    return [
        (frame.f_code.co_filename, line, function_name(frame.f_code))
        for frame, line in walk_tb(error.__traceback__)
    ]
