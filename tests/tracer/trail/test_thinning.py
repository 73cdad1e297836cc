"""The size limit: it holds, the first and last events of each storage stay, the rest is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.rules.timeline import Did
from tensortrail.tracer.trail.layout import CODE, EVENT, KINDS
from tensortrail.tracer.trail.part import Part
from tensortrail.tracer.trail.reader import read_part
from tensortrail.tracer.trail.writer import TrailWriter

from .samples import HEADER

NOTES = 500
"""Bytes that header and end take beyond the limit."""

COPY, ALIAS, FREE, PHASE = (CODE[did] for did in (Did.COPY, Did.ALIAS, Did.FREE, Did.PHASE))


def limited(folder: Path, limit: int, storages: int, rounds: int, frees: bool = True) -> Part:
    """Storages live at the same time, each with its first, many middle and its last event."""
    path = folder / "t.trail"
    writer = TrailWriter(str(path), HEADER, limit)
    numbers = [writer.storage("cpu", 4, "float32", (1,), "") for _ in range(storages)]
    for number in numbers:
        writer.event(CODE[Did.CREATE], 0, 0, number)
    for _ in range(rounds):
        for number in numbers:
            writer.event(COPY, 0, 0, number)
    for number in numbers:
        writer.event(ALIAS, 0, 0, number)
        if frees:
            writer.event(FREE, 0, 0, number)
    writer.close()
    part = read_part(str(path))
    assert not part.damage
    assert part.closed
    assert path.stat().st_size <= limit + NOTES
    told = len(part.rows) + sum(part.dropped.values())
    assert told == writer.events == storages * (rounds + 2 + frees)
    return part


def by_storage(part: Part) -> dict[int, list[Did]]:
    found: dict[int, list[Did]] = {}
    for row in part.rows:
        found.setdefault(row[4], []).append(KINDS[row[0] - EVENT])
    return found


@pytest.mark.parametrize("frees", [True, False])
def test_first_and_last_events_stay(tmp_path: Path, frees: bool) -> None:
    part = limited(tmp_path, limit=40_000, storages=150, rounds=200, frees=frees)
    kept = by_storage(part)
    assert len(kept) == 150
    for kinds in kept.values():
        assert kinds[0] is Did.CREATE
        assert kinds[-2:] == [Did.ALIAS, Did.FREE] if frees else kinds[-1] is Did.ALIAS
    assert set(part.dropped) == {"copy"}
    assert part.dropped["copy"] > 20_000


def test_nothing_is_dropped_without_need(tmp_path: Path) -> None:
    assert not limited(tmp_path, limit=1_000_000, storages=20, rounds=20).dropped


@pytest.mark.parametrize("limit", [0, 100, 1000, 5000, 20_000, 100_000])
def test_the_limit_holds_whatever_comes(tmp_path: Path, limit: int) -> None:
    limited(tmp_path, limit, storages=3000, rounds=3)


def test_the_limit_holds_for_rare_events_and_names(tmp_path: Path) -> None:
    path = tmp_path / "t.trail"
    writer = TrailWriter(str(path), HEADER, 50_000)
    for step in range(20_000):
        number = writer.storage("cpu", 4, "float32", (1,), "")
        writer.name(number, f"name {step}")
        writer.event(PHASE, writer.context(f"t{step}", ""), 0, facts={"began": f"p{step}"})
        writer.event(FREE, 0, 0, number)
    writer.close()
    part = read_part(str(path))
    assert path.stat().st_size <= 50_000 + NOTES
    assert part.closed
    assert len(part.rows) + sum(part.dropped.values()) == 40_000
    assert {row[0] for row in part.rows} == {PHASE, FREE}


def test_errors_are_kept_when_much_else_is_not(tmp_path: Path) -> None:
    path = tmp_path / "t.trail"
    writer = TrailWriter(str(path), HEADER, 50_000)
    number = writer.storage("cpu", 4, "float32", (1,), "")
    for _ in range(30_000):
        writer.event(COPY, 0, 0, number)
    writer.event(CODE[Did.ERROR], 0, 0, number, facts={"message": "at the end"})
    writer.close()
    errors = [row for row in read_part(str(path)).rows if row[0] == CODE[Did.ERROR]]
    assert [row[7]["message"] for row in errors] == ["at the end"]
