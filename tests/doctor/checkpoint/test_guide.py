"""The guide shows what the commands print."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("huggingface_hub")

from tests.doctor.checkpoint.damages import DAMAGES
from tests.doctor.checkpoint.guide import BLOCK, PAGE, SETTINGS, current


def test_the_transcripts_are_current() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert len(BLOCK.findall(page)) == 5
    assert len(SETTINGS.findall(page)) == 1
    assert current(page) == page, "python -m tests.doctor.checkpoint.guide writes it"


def test_the_table_has_every_damage_with_its_check() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for damage in DAMAGES:
        words = damage.name.replace("_", " ")
        assert f"| {damage.base}: {words} | {damage.code} |" in page
