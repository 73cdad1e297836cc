"""Text from inputs does nothing to a terminal, a log or a reader."""

from __future__ import annotations

import os
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortrail.reporters.inert import inert, inert_path


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [bold] text", "plain [bold] text"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x9b31m", "\\x9b31m"),
        ("a\r\nb\tc", "a\\x0d\\x0ab\\x09c"),
        ("\u202eevil\u2066", "\\u202eevil\\u2066"),
        ("\u2028\u2029", "\\u2028\\u2029"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("tag\U000e0041", "tag\\U000e0041"),
        (os.fsdecode(b"caf\xe9"), "caf\\udce9"),
        ("日本 \U0001f468\u200d\U0001f467 é", "日本 \U0001f468\u200d\U0001f467 é"),
        ("##[set-output name=x;]v", "#\\x23[set-output name=x;]v"),
        ("###[debug]", "##\\x23[debug]"),
        ("# [debug]", "# [debug]"),
    ],
)
def test_what_cannot_be_seen_is_spelled_out(text: str, shown: str) -> None:
    assert inert(text) == shown


def test_what_is_kept() -> None:
    assert inert("a\nb\x07", keep="\n") == "a\nb\\x07"


@pytest.mark.parametrize("path", ["::error::x.py", "  ::error::x.py", "\u3000::error::x.py"])
def test_a_path_begins_no_command(path: str) -> None:
    assert inert_path(path) == f"./{path}"
    assert inert_path(f"src/{path}") == f"src/{path}"


@given(st.text() | st.text(st.characters(categories=("Cc", "Cf", "Cs", "Zl", "Zp"))))
def test_nothing_unseen_gets_through(text: str) -> None:
    shown = inert(text)
    shown.encode("utf-8")
    left = {unicodedata.category(each) for each in shown if each not in "\u200c\u200d"}
    assert not left & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert "##[" not in shown
    assert inert(shown) == shown
