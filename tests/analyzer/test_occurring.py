"""Words are found in a text wherever plain search finds them."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

import pytest

from tensortrail.analyzer.choosing import occurring
from tensortrail.analyzer.choosing.chosen import Chosen
from tensortrail.analyzer.choosing.occurring import Words
from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.choosing.rule_index import listed

WORDS = Chosen(CheckRequest(codes=frozenset(listed()))).words
OTHERS = {b"(", b"dump", b"dumps(", b'"', b"'utf-8", b".dumps", b"a = ", b"self.", b"==", b"\xc3"}
TEXTS = sorted(Path(json.__file__).parent.parent.glob("*.py"))[:60]


def plainly(text: bytes, words: Collection[bytes]) -> set[bytes]:
    return {b"", *(word for word in words if word in text)}


def test_the_words_of_the_rules_are_found_in_file_after_file() -> None:
    words = WORDS | OTHERS
    quick = Words(words)
    found = [(quick.within(each.read_bytes()), each) for each in TEXTS]
    assert sum(len(each) for each, _ in found) > 20 * len(TEXTS)
    for each, path in found:
        assert each == plainly(path.read_bytes(), words), path


def test_names_that_are_forgotten_are_learnt_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(occurring, "_MOST", 500)
    quick = Words(OTHERS)
    for path in TEXTS[:20]:
        text = path.read_bytes()
        assert quick.within(text) == plainly(text, OTHERS), path


@pytest.mark.parametrize(
    "text",
    [
        b"x.zeros(2)", b"x.zeros (2)", b"new_zeros(2)", b"f('cuda')", b'f("cuda:0")',
        b"a=device==b", b"(((", b"a.b.c", "\u00e9.cuda()".encode(), b"device =1", b"cpu", b"",
    ],
)  # fmt: skip
def test_signs_at_a_name_count(text: bytes) -> None:
    words = {
        b"zeros(", b".zeros", b"'cuda", b'"cuda', b'"cuda"', b"device=", b"device =", b"=device",
        b".b", b".b.", b"((", b".cuda()", b"\xa9.cuda", b"cp", b"pu", b"zeros (",
    }  # fmt: skip
    assert Words(words).within(text) == plainly(text, words)
