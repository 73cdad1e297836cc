"""The rows of a process become the columns of `rows.Flat`, without an object for each event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tensortrail.tracer.exports.rows import to_json
from tensortrail.tracer.reading.process import Process
from tensortrail.tracer.reading.storage_names import names
from tensortrail.tracer.trail.layout import EVENT, KINDS, Row

NOBODY: Row = (0,) * 8
Column = list[Any]


def columns_of(process: Process) -> dict[str, Column]:
    """By the name of the column; as `rows.flat_rows` would say them."""
    if not process.part.rows:
        return {}
    rows = _Rows(process)
    facts = [to_json(each) if each else None for each in rows.facts]
    return {**rows.of_events(), **rows.of_tensors(), **rows.of_places(), "facts": facts}


class _Rows:
    """The columns as they were recorded; each number in them is looked up once."""

    def __init__(self, process: Process) -> None:
        self._process, self._part = process, process.part
        columns = [list(each) for each in _columns(self._part.rows)]
        self._codes, _, self._contexts, self._sites = columns[:4]
        self._storages, self._others, self._ops, self.facts = columns[4:]

    def of_events(self) -> dict[str, Column]:
        text, rows = self._part.text, self._part.rows
        context = {n: self._part.contexts.get(n, NOBODY) for n in set(self._contexts)}
        threads, phases = (
            {n: text(row[place]) or None for n, row in context.items()} for place in (2, 3)
        )
        return {
            "time": [self._process.time(row) for row in rows],
            "process": [self._process.label] * len(rows),
            "thread": _looked_up(self._contexts, threads),
            "phase": _looked_up(self._contexts, phases),
            "did": _looked_up(self._codes, {EVENT + n: did.value for n, did in enumerate(KINDS)}),
            "op": _looked_up(self._ops, {n: text(n) or None for n in set(self._ops)}),
        }

    def of_tensors(self) -> dict[str, Column]:
        storages, others, known = self._storages, self._others, names(self._process)
        told = {number: self._process.storage(number) for number in {*storages, *others}}

        def of(numbers: Column, ask: Callable[[Any], Any]) -> Column:
            values = {number: ask(each) if each else None for number, each in told.items()}
            return _looked_up(numbers, values)

        return {
            "storage": [number or None for number in storages],
            "other": [number or None for number in others],
            "name": [known.get(a or b) for a, b in zip(storages, others, strict=True)],
            "device": of(storages, lambda each: each.device),
            "from_device": of(others, lambda each: each.device),
            "bytes": of(storages, lambda each: each.nbytes),
            "dtype": of(storages, lambda each: each.dtype or None),
            "shape": of(storages, lambda each: each.shape),
        }

    def of_places(self) -> dict[str, Column]:
        lines = {number: self._process.site(number) for number in set(self._sites)}

        def of(place: int, ask: Callable[[Any], Any]) -> Column:
            values = {n: ask(pair[place]) if pair[place] else None for n, pair in lines.items()}
            return _looked_up(self._sites, values)

        return {
            "file": of(0, lambda each: each.file),
            "line": of(0, lambda each: each.line),
            "function": of(0, lambda each: each.function),
            "by_file": of(1, lambda each: each.file),
            "by_line": of(1, lambda each: each.line),
            "by_function": of(1, lambda each: each.function),
        }


def _columns(rows: Sequence[Row]) -> Iterable[tuple[Any, ...]]:
    return zip(*(row[:8] for row in rows), strict=True)


def _looked_up(numbers: Iterable[int], values: Mapping[int, Any]) -> Column:
    return list(map(values.__getitem__, numbers))
