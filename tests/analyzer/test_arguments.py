"""An argument given to a call, and nothing else changed."""

from __future__ import annotations

import pytest

pytest.importorskip("libcst")

from tensortrail.analyzer.fixing.arguments import with_argument
from tensortrail.analyzer.fixing.origins import Refused

GIVEN = {
    "no argument": ("f()", "f(size=7)"),
    "one": ("f(a)", "f(a, size=7)"),
    "several": ("f(a,b)", "f(a,b,size=7)"),
    "replaced": ("f(a, size='5GB', b=1)", "f(a, size=7, b=1)"),
    "replaced with its spaces": ("f(a, size = 5 )", "f(a, size = 7 )"),
    "by position": ("f(a, b, 5)", "f(a, b, 7)"),
    "before what is unpacked": ("f(a, *more, **rest)", "f(a, *more, size=7, **rest)"),
    "only what is unpacked": ("f(**rest)", "f(size=7, **rest)"),
    "trailing comma": ("f(a, b,)", "f(a, b, size=7,)"),
    "a chain": ("m.f(a).save(b)", "m.f(a).save(b, size=7)"),
    "several lines": ("f(\n    a,\n    b,\n)", "f(\n    a,\n    b,\n    size=7,\n)"),
    "one on its line": ("f(\n    a,\n)", "f(\n    a,\n    size=7,\n)"),
    "no comma at the end": ("f(\n    a\n)", "f(\n    a,\n    size=7\n)"),
    "hanging": ("f(a,\n  b)", "f(a,\n  b,\n  size=7)"),
    "windows": ("f(\r\n    a,\r\n)", "f(\r\n    a,\r\n    size=7,\r\n)"),
    "comments": (
        "f(\n    a,  # one\n    # of b\n    b,  # two\n)",
        "f(\n    a,  # one\n    # of b\n    b,  # two\n    size=7,\n)",
    ),
    "a comment and no comma": (
        "f(\n    a,\n    b  # two\n)",
        "f(\n    a,\n    b,  # two\n    size=7\n)",
    ),
    "a generator": ("all(x for x in y)", "all((x for x in y), size=7)"),
    "parentheses": ("f((a))", "f((a), size=7)"),
    "a chain over lines": ("m\n  .f(a)", "m\n  .f(a, size=7)"),
    "no ascii": ("f('→ 🙂')", "f('→ 🙂', size=7)"),
}


@pytest.mark.parametrize(("before", "after"), GIVEN.values(), ids=GIVEN)
def test_given(before: str, after: str) -> None:
    assert with_argument(before, "size", "7", position=2) == after
    assert with_argument(after, "size", "7", position=2) == after


def test_an_argument_without_a_position_is_added_by_name() -> None:
    assert with_argument("f(a, 5)", "size", "7") == "f(a, 5, size=7)"


@pytest.mark.parametrize("text", ["f", "f(a) + 1", "f(", "x = f()", "f(a); g()"])
def test_what_is_no_call(text: str) -> None:
    with pytest.raises(Refused):
        with_argument(text, "size", "7")


@pytest.mark.parametrize("value", ["", "7; import os", "a b", "7)"])
def test_a_value_that_is_no_expression(value: str) -> None:
    with pytest.raises(Refused):
        with_argument("f()", "size", value)
