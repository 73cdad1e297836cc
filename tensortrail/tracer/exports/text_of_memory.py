"""The text report: what was moved, what lies on which device, and what filled one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensortrail.inert import inert
from tensortrail.rules.shared.refused_memory import filled_of
from tensortrail.rules.shared.sizes import memory
from tensortrail.tracer.explaining import memory_table
from tensortrail.tracer.exports.model_placements import placed
from tensortrail.tracer.exports.text_table import ROWS, cells, table_of, where
from tensortrail.tracer.reading import sentences
from tensortrail.tracer.reading.sentences import place
from tensortrail.tracer.reading.summary import Summary
from tensortrail.tracer.reading.timeline import RunTimeline

BARS = "▁▂▃▄▅▆▇█"


def moves(summary: Summary) -> Iterator[Any]:
    lines = summary.moves_by_line
    if not lines:
        return
    left, right = "left", "right"
    table = table_of(
        "Who moved what", ("bytes", right), ("times", right), ("way", left), ("where", left),
        ("by", left),
    )  # fmt: skip
    for each in lines[:ROWS]:
        way = f"{each.source} -> {each.target}"
        by = place(each.by) if each.by else each.op
        row = (sentences.size(each.nbytes), each.count, way, place(each.site or each.by), by)
        table.add_row(*cells(*row))
    yield table
    if len(lines) > ROWS:
        yield f"  and {len(lines) - ROWS} more lines that moved something"


def devices(summary: Summary, timeline: RunTimeline, bars: int) -> Iterator[Any]:
    uses = summary.alive_by_device
    if not uses:
        return
    curves = {curve.device: curve for curve in summary.bytes_over_time(bars)}
    # The table of what filled a device counts more: tensors that no event tells of.
    seen_only = ", as far as storages were seen" * any(map(filled_of, summary.errors))
    table = table_of(
        f"Bytes by device{seen_only}", ("device", "left"), ("at the end", "right"),
        ("storages", "right"), ("most", "right"), ("over time", "left"), ("largest", "left"),
    )  # fmt: skip
    for use in uses:
        curve = curves.get(use.device)
        line = _sparkline(curve.peaks) if curve else ""
        largest = ", ".join(timeline.name(each) for each in use.largest[:2])
        sizes = sentences.size(use.nbytes), use.count, sentences.size(use.peak)
        row = (use.device, *sizes, line, largest)
        table.add_row(*cells(*row))
    yield table


def placements(timeline: RunTimeline) -> Iterator[Any]:
    for event, rows, differing in placed(timeline):
        table = table_of(
            f"Placement of {event.facts.get('model')} at {where(event)}", ("modules", "left"),
            ("declared", "left"), ("is on", "left"), ("bytes", "right"), ("brought by", "left"),
        )  # fmt: skip
        for row in rows[:ROWS]:
            lies = row.lies or "-"
            size = sentences.size(row.nbytes) if row.nbytes else ""
            table.add_row(*cells(row.modules, row.declared, lies, size, row.hooks))
        yield table
        if len(rows) > ROWS:
            yield f"  and {len(rows) - ROWS} more"
        yield from (inert(f"  differs: {each}") for each in differing[:ROWS])


def filled_devices(summary: Summary) -> Iterator[Any]:
    """What lay on a device when it gave no more memory, as the error counts it."""
    for event in summary.errors[:ROWS]:
        if not (filled := filled_of(event)):
            continue
        nbytes = memory(sum(each["bytes"] for each in filled))
        table = table_of(
            f"{nbytes} filled the device at {where(event)}", ("bytes", "right"),
            ("kind", "left"), ("what", "left"), ("made at", "left"), ("grows", "left"),
        )  # fmt: skip
        for row in memory_table.table(filled):
            table.add_row(*cells(*row.cells))
        yield table


def _sparkline(values: tuple[int, ...]) -> str:
    top = max(values, default=0)
    return "".join(BARS[min(7, value * 8 // (top + 1))] if value else " " for value in values)


def move_line(each: Any) -> str:
    times = f" in {each.count} moves" if each.count > 1 else ""
    way = f"{each.source} -> {each.target}"
    return f"{sentences.size(each.nbytes):>9}  {way}{times}  {place(each.site or each.by)}"
