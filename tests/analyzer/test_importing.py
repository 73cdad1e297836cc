"""One more import at the top of a file."""

from __future__ import annotations

import pytest

from tensortrail.analyzer.fixing.importing import with_import
from tensortrail.analyzer.fixing.origins import Refused

STATEMENT = "from a.b import C"
ADDED = {
    "after the imports": ("import x\nfrom y import z\nC()\n", 2),
    "after the docstring": ('"""Doc."""\nC()\n', 1),
    "after the future": ("from __future__ import annotations\nimport x\n\nC()\n", 2),
    "after several lines": ("from x import (\n    y,\n)  # why\nC()\n", 3),
    "first": ("C()\n", 0),
}


@pytest.mark.parametrize(("source", "line"), ADDED.values(), ids=ADDED)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("head", [b"", b"\xef\xbb\xbf"])
def test_added(source: str, line: int, newline: str, head: bytes) -> None:
    lines = source.splitlines()
    data = head + source.replace("\n", newline).encode()
    after = newline.join([*lines[:line], STATEMENT, *lines[line:], ""])
    assert with_import("a.py", data, STATEMENT) == head + after.encode()
    assert with_import("a.py", head + after.encode(), STATEMENT) == head + after.encode()


def test_one_of_several_names_is_there_already() -> None:
    data = b"from a.b import A, C\nC()\n"
    assert with_import("a.py", data, STATEMENT) == data


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("from other import C\n", "C is another thing in this file"),
        ("import x\ndef f(C): pass\n", "C is another thing in this file"),
        ("from a.b import X as C\n", "C is another thing in this file"),
        ("import x; y = 1\n", "the imports of the file do not end their line"),
        ("import x", "the imports of the file do not end their line"),
        ("#!/usr/bin/python\nC()\n", "the file begins with what must come first"),
    ],
)
def test_refused(source: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        with_import("a.py", source.encode(), STATEMENT)
