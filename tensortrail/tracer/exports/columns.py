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
    part, text = process.part, process.part.text
    if not part.rows:
        return {}
    codes, _, contexts, sites, storages, others, ops, facts = map(list, _columns(part.rows))
    known = names(process)
    told = {number: process.storage(number) for number in {*storages, *others}}
    lines = {number: process.site(number) for number in set(sites)}
    context = {number: part.contexts.get(number, NOBODY) for number in set(contexts)}

    def of_storage(numbers: Sequence[int], ask: Callable[[Any], Any]) -> Column:
        values = {number: ask(each) if each else None for number, each in told.items()}
        return _looked_up(numbers, values)

    def of_site(place: int, ask: Callable[[Any], Any]) -> Column:
        values = {n: ask(pair[place]) if pair[place] else None for n, pair in lines.items()}
        return _looked_up(sites, values)

    def of_context(place: int) -> Column:
        return _looked_up(contexts, {n: text(row[place]) or None for n, row in context.items()})

    return {
        "time": [process.time(row) for row in part.rows],
        "process": [process.label] * len(part.rows),
        "thread": of_context(2),
        "phase": of_context(3),
        "did": _looked_up(codes, {EVENT + n: did.value for n, did in enumerate(KINDS)}),
        "op": _looked_up(ops, {number: text(number) or None for number in set(ops)}),
        "storage": [number or None for number in storages],
        "other": [number or None for number in others],
        "name": [known.get(a or b) for a, b in zip(storages, others, strict=True)],
        "device": of_storage(storages, lambda each: each.device),
        "from_device": of_storage(others, lambda each: each.device),
        "bytes": of_storage(storages, lambda each: each.nbytes),
        "dtype": of_storage(storages, lambda each: each.dtype or None),
        "shape": of_storage(storages, lambda each: each.shape),
        "file": of_site(0, lambda each: each.file),
        "line": of_site(0, lambda each: each.line),
        "function": of_site(0, lambda each: each.function),
        "by_file": of_site(1, lambda each: each.file),
        "by_line": of_site(1, lambda each: each.line),
        "by_function": of_site(1, lambda each: each.function),
        "facts": [to_json(each) if each else None for each in facts],
    }


def _columns(rows: Sequence[Row]) -> Iterable[tuple[Any, ...]]:
    return zip(*(row[:8] for row in rows), strict=True)


def _looked_up(numbers: Iterable[int], values: Mapping[int, Any]) -> Column:
    return list(map(values.__getitem__, numbers))
