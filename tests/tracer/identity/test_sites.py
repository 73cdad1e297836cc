"""Whose line an event is, and which library's name stands beside it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tensortrail.tracer.identity.sites import frames  # noqa: E402

TORCH = str(Path(torch.__file__).with_name("plumbing.py"))
LIBRARY = "/somewhere/site-packages/library/place.py"
OTHER = "/somewhere/site-packages/other/place.py"


def through(*files: str) -> tuple[str, str]:
    """The files named when code of these files, outermost first, leads to an event."""

    def innermost() -> tuple[FrameType | None, FrameType | None]:
        return frames(sys._getframe(1))

    call: Callable[[], Any] = innermost
    for file in reversed(files):
        names: dict[str, Any] = {"inner": call}
        exec(compile("def call():\n    return inner()", file, "exec"), names)
        call = names["call"]
    user, by = call()
    return (user.f_code.co_filename if user else ""), (by.f_code.co_filename if by else "")


def test_the_library_that_called_torch_is_the_one_named() -> None:
    assert through("/home/me/train.py", LIBRARY, TORCH, TORCH) == ("/home/me/train.py", LIBRARY)


def test_the_innermost_of_several_libraries_is_named() -> None:
    assert through("/home/me/train.py", OTHER, LIBRARY, TORCH)[1] == LIBRARY


def test_torch_is_named_where_no_other_library_is() -> None:
    assert through("/home/me/train.py", TORCH) == ("/home/me/train.py", TORCH)


def test_no_library_is_named_above_the_users_line() -> None:
    assert through(LIBRARY, "/home/me/train.py") == ("/home/me/train.py", "")
