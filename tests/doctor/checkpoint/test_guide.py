"""The guide shows what the commands print."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("huggingface_hub")

from tests.doctor.checkpoint.damages import DAMAGES
from tests.doctor.checkpoint.guide import (
    BLOCK,
    PAGE,
    PLACEMENT,
    PLAN,
    SETTINGS,
    TABLE,
    current,
    placed,
    planned,
)
from tests.doctor.saves.families import FAMILIES


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


def test_the_table_of_plans_has_every_family_and_no_plan_that_was_wrong() -> None:
    (found,) = TABLE.findall(PAGE.read_text(encoding="utf-8"))
    assert "(wrong)" not in found[1]
    for family in FAMILIES:
        assert f"\n| {family} |" in found[1]


@pytest.mark.complete
@pytest.mark.real
def test_the_transcripts_with_models_are_current() -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    ((_, command, shown),) = PLACEMENT.findall(PAGE.read_text(encoding="utf-8"))
    assert placed(command) == shown, "python -m tests.doctor.checkpoint.guide writes it"
    ((_, command, shown),) = PLAN.findall(PAGE.read_text(encoding="utf-8"))
    assert planned(command) == shown, "python -m tests.doctor.checkpoint.guide writes it"
