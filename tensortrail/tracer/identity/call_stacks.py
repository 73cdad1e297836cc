"""The user's functions that run now, as places that outlive them."""

from __future__ import annotations

from types import CodeType, FrameType

from tensortrail.tracer.identity.sites import (
    LIBRARY,
    OWNERS,
    PLUMBING,
    USER,
    Place,
    function_name,
    outwards,
)

MOST_USER_FRAMES, MOST_FRAMES = 12, 120
DECORATED, WRAPPED = "decorate_context", "func"
"""What torch calls the function around one that `@torch.no_grad()` stands on, and that one."""
SWITCHES = ("torch/autograd/grad_mode.py", "torch/utils/_contextlib.py")
"""They only do what they are asked."""

MODULE = "<module>"
Line = tuple[CodeType, int]
Key = tuple[tuple[int, int], ...]


def user_lines(frame: FrameType | None) -> tuple[Line, ...]:
    """The innermost first: code and line of each of the user's functions. In one loop, as it is
    asked for often."""
    found: list[Line] = []
    owners = OWNERS
    while frame is not None:
        code = frame.f_code
        if owners[code.co_filename] == USER:
            found.append((code, frame.f_lineno))
            if code.co_name == MODULE or len(found) == MOST_USER_FRAMES:
                break
        frame = frame.f_back
    return tuple(found)


def key_of(lines: tuple[Line, ...]) -> Key:
    """Code takes long to hash; whoever keeps the key keeps the lines, and so the code."""
    return tuple([(id(code), line) for code, line in lines])


def places(lines: tuple[Line, ...]) -> list[Place]:
    return [(code.co_filename, line, function_name(code)) for code, line in lines]


def library_above(frame: FrameType | None) -> Place | None:
    """What the user's innermost line called, if that is a library's function."""
    above: FrameType | None = None
    for each in outwards(frame, MOST_FRAMES):
        who = OWNERS[each.f_code.co_filename]
        if who == USER:
            break
        asked = each.f_code.co_filename.replace("\\", "/").endswith(SWITCHES)
        if who == LIBRARY or (who == PLUMBING and above is None and not asked):
            above = each
    if above is None:
        return None
    return above.f_code.co_filename, above.f_lineno, function_name(above.f_code)


def decorated(frame: FrameType | None) -> Place | None:
    """The user's function that a decorator of torch runs, where it stands."""
    for each in outwards(frame, MOST_FRAMES):
        if OWNERS[each.f_code.co_filename] == USER:
            return None
        if each.f_code.co_name == DECORATED:
            code = getattr(each.f_locals.get(WRAPPED), "__code__", None)
            if code is not None and OWNERS[code.co_filename] == USER:
                return code.co_filename, code.co_firstlineno, function_name(code)
    return None
