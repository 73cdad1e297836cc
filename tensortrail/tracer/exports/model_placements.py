"""The placement of models in a run is shown as rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from tensortrail.rules.shared import device_maps
from tensortrail.rules.timeline import Event
from tensortrail.tracer.reading.timeline import RunTimeline


@dataclass(frozen=True)
class Placed:
    modules: str
    declared: str
    lies: str
    nbytes: int
    hooks: str


def placed(timeline: RunTimeline) -> Iterator[tuple[Event, list[Placed], list[str]]]:
    """Each load or dispatch, its rows, and where what was declared and what is differ."""
    for event in device_maps.placements(timeline):
        rows = [row for row in event.facts["rows"] if isinstance(row, Mapping)]
        alike = [list(group) for _, group in groupby(rows, key=_fate)]
        differing = [device_maps.sentence(each) for each in device_maps.differences(event)]
        yield event, [_row(group) for group in alike], differing


def _fate(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return str(row.get("declared")), _joined(row.get("lies")), _joined(row.get("hooks"))


def _row(rows: Sequence[Mapping[str, Any]]) -> Placed:
    first, last = (str(each.get("module") or "the whole model") for each in (rows[0], rows[-1]))
    between = f" ... {last} ({len(rows)})" if len(rows) > 2 else f", {last}"
    declared, lies, hooks = _fate(rows[0])
    nbytes = sum(n for row in rows if isinstance(n := row.get("nbytes"), int))
    return Placed(first + between * (len(rows) > 1), declared, lies, nbytes, hooks)


def _joined(values: object) -> str:
    told = values if isinstance(values, (list, tuple)) else ()
    return ", ".join(str(each) or "meta, no values" for each in told)
