"""Characters and the client's positions, whatever the text."""

from __future__ import annotations

import re
import threading
from concurrent.futures import wait

import pytest

pytest.importorskip("pygls")

from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types as lsp

from tensortrail.editor.checks import Checks
from tensortrail.editor.text import Text
from tensortrail.findings import Finding, Site

texts = st.text(st.sampled_from("ab\n\r\x0c\u2028\u00e4\U0001d11e"))


@given(texts, st.sampled_from(["utf-8", "utf-16", "utf-32"]), st.data())
def test_each_offset_is_a_position_and_back(text: str, encoding: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text)))
    if text[offset - 1 : offset + 1] == "\r\n":
        return  # inside of a line's end there is no position
    where = Text(text, encoding).at(offset)
    before = re.split("\r\n|\r|\n", text[:offset])
    width = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    units = len(before[-1].encode(encoding if width == 1 else f"{encoding}-le")) // width
    assert where == lsp.Position(len(before) - 1, units)
    assert Text(text, encoding).offset(where) == offset


@given(texts, texts, st.data())
def test_changes_are_made_where_the_client_says(old: str, new: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(old)))
    end = data.draw(st.integers(start, len(old)))
    if "\r\n" in (old[start - 1 : start + 1], old[end - 1 : end + 1]):
        return
    text = Text(old)
    where = lsp.Range(text.at(start), text.at(end))
    changed = text.changed(lsp.TextDocumentContentChangePartial(where, new))
    assert changed.content == old[:start] + new + old[end:]
    assert text.changed(lsp.TextDocumentContentChangeWholeDocument(new)).content == new


def test_positions_past_the_end_are_the_end() -> None:
    text = Text("ab\nc")
    assert text.offset(lsp.Position(0, 99)) == 2
    assert text.offset(lsp.Position(99, 0)) == 4


def test_texts_that_were_overtaken_are_not_checked() -> None:
    begun, go_on = threading.Event(), threading.Event()
    checked: list[bytes] = []

    def check(name: str, program: bytes) -> tuple[list[Finding], list[Site]]:
        begun.set()
        assert go_on.wait(60)
        checked.append(program)
        return [], []

    checks = Checks(check)
    first = checks.ask("a", "a.py", 0, b"0")
    assert begun.wait(60)
    later = [checks.ask("a", "a.py", number, b"%d" % number) for number in range(1, 20)]
    other = checks.ask("b", "b.py", 1, b"other")
    go_on.set()
    wait([first, later[-1], other])
    assert checked == [b"0", b"other", b"19"], "the newest text goes first"
    assert all(each.cancelled() for each in later[:-1])
    result = later[-1].result()
    assert result is not None
    assert result.version == 19
    checks.stop()
