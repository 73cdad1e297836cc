"""A site is the user's frame and the library's frame behind an event."""

from __future__ import annotations

import contextlib
import os
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

import torch

OURS, LIBRARY, USER, PLUMBING = range(4)
"""Plumbing is torch and Python's own: a library that called it is the better name."""
_HERE = str(Path(__file__).absolute().parents[2]) + os.sep
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep


def _folders(*names: str) -> tuple[str, ...]:
    return tuple({path + os.sep for name in names if (path := sysconfig.get_path(name))})


_PACKAGES = _folders("purelib", "platlib")
_PYTHON = _folders("stdlib", "platstdlib")
_MARKS = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_BETWEEN = {
    module.__file__
    for module in (contextlib, torch.overrides, torch.functional, torch.nn.functional)
}
"""Files that only hand a call on: nobody wants to be sent there."""
MOST_SITES: Final = 100_000
Place = tuple[str, int, str]
"""File, line and function."""

Key = tuple[int, ...]
Known = tuple[int, CodeType | None, CodeType | None]
"""The number of a site. Its code is kept, so that no other code gets its identity."""


def owner(file: str) -> int:
    """Who wrote the code in that file."""
    if file.startswith(_HERE) or file in _BETWEEN:
        return OURS
    if file.startswith("<"):
        return USER if file in ("<stdin>", "<string>") or file.startswith("<ipython") else LIBRARY
    if file.startswith(_TORCH):
        return PLUMBING
    if file.startswith(_PACKAGES) or any(mark in file for mark in _MARKS):
        return LIBRARY
    if file.startswith(_PYTHON):
        return PLUMBING
    return USER


class Owners(dict[str, int]):
    def __missing__(self, file: str) -> int:
        found = owner(file)
        if len(self) < MOST_SITES:
            self[file] = found
        return found


OWNERS = Owners()


def frames(frame: FrameType | None) -> tuple[FrameType | None, FrameType | None]:
    """The innermost frame of the user, and the innermost one of a library below it."""
    by: FrameType | None = None
    plumbing: FrameType | None = None
    owners = OWNERS
    while frame is not None:
        who = owners[frame.f_code.co_filename]
        if who == USER:
            return frame, by or plumbing
        if by is None:
            if who == LIBRARY:
                by = frame
            elif who == PLUMBING and plumbing is None:
                plumbing = frame
        frame = frame.f_back
    return None, by or plumbing


def file_of(frame: FrameType) -> str:
    return frame.f_code.co_filename


def outwards(frame: FrameType | None, most: int) -> Iterator[FrameType]:
    """The frame and those around it, up to so many."""
    for _ in range(most):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


def place(frame: FrameType | None) -> Place:
    if frame is None:
        return "", 0, ""
    code = frame.f_code
    file = code.co_filename
    if not file.startswith(("<", os.sep)):
        file = os.path.abspath(file)  # the main script, as it was named on the command line
    return file, frame.f_lineno, function_name(code)


def function_name(code: CodeType) -> str:
    return str(getattr(code, "co_qualname", code.co_name))


def user_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """The user's functions among those that run, the innermost first."""
    while frame is not None:
        if OWNERS[frame.f_code.co_filename] == USER:
            yield frame
        frame = frame.f_back


def runs(frame: FrameType, file: str, function: str) -> bool:
    """The frame is of that function of a library, whose file ends so."""
    code = frame.f_code
    return code.co_name == function and code.co_filename.replace("\\", "/").endswith(file)
