"""The text report tells a run to people at a terminal."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tensortrail.inert import inert
from tensortrail.plurals import counted
from tensortrail.rules.shared.refused_memory import filled_of
from tensortrail.rules.shared.sizes import memory
from tensortrail.rules.timeline import Did, Event
from tensortrail.tracer.explaining import memory_table
from tensortrail.tracer.exports.model_placements import placed
from tensortrail.tracer.reading import sentences
from tensortrail.tracer.reading.ranks.comparison import differences, shared_devices
from tensortrail.tracer.reading.ranks.names import named
from tensortrail.tracer.reading.sentences import place
from tensortrail.tracer.reading.summary import Summary
from tensortrail.tracer.reading.timeline import RunTimeline

ROWS = 12
BARS = "▁▂▃▄▅▆▇█"
BARS_SHOWN = 24
WIDE = 100
"""Columns from which on names have room beside all bars."""


def render(timeline: RunTimeline, *, color: bool = False, width: int = 100) -> str:
    from rich.console import Console

    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=color, no_color=not color, highlight=False
    )
    for part in _parts(timeline, Summary(timeline), width):
        console.print(part)
    return out.getvalue()


def _parts(timeline: RunTimeline, summary: Summary, width: int) -> Iterator[Any]:
    yield _head(timeline, summary)
    yield from _ranks(timeline)
    yield from _moves(summary)
    yield from _devices(summary, timeline, BARS_SHOWN if width >= WIDE else BARS_SHOWN // 3)
    yield from _placements(timeline)
    yield from _phases(summary)
    yield from _meetings(summary, timeline)
    yield from _errors(summary)
    yield from _filled(summary)


def _head(timeline: RunTimeline, summary: Summary) -> Any:
    from rich.text import Text

    header = timeline.parts[0].header
    argv = header.get("argv")
    program = " ".join(map(str, argv)) if isinstance(argv, (list, tuple)) else "?"
    events = sum(summary.counts.values())
    facts = [
        counted(events, "event"),
        counted(len(timeline.parts), "process"),
        f"{summary.seconds:.1f} s" if summary.seconds >= 1 else f"{summary.seconds * 1e3:.0f} ms",
        f"torch {header.get('torch', '?')}",
    ]
    dropped = sum(n for part in timeline.parts for n in part.dropped.values())
    if dropped:
        facts.append(f"{counted(dropped, 'event')} dropped at the size limit")
    open_ended = sum(not part.closed for part in timeline.parts)
    if open_ended:
        facts.append(f"{counted(open_ended, 'process')} without a recorded end")
    return Text.assemble((inert(program), "bold"), "\n", (" · ".join(facts), "dim"))


def _table(title: str, *columns: tuple[str, str]) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for name, justify in columns:
        table.add_column(
            name,
            justify=justify,  # type: ignore[arg-type]
            overflow="fold",
            no_wrap=name in ("over time", "device", "way"),
        )
    return table


def _cells(*values: Any) -> list[Any]:
    from rich.text import Text

    return [Text(inert(str(value))) for value in values]


def _ranks(timeline: RunTimeline) -> Iterator[Any]:
    found = differences(timeline)
    if found:
        table = _table("Where ranks differ", ("only", "left"), ("where", "left"), ("what", "left"))
        for each in found[:ROWS]:
            times = f" and {each.count - 1} more" if each.count > 1 else ""
            table.add_row(*_cells(named(each.ranks), place(each.site), each.what + times))
        yield table
        if len(found) > ROWS:
            yield f"  and {len(found) - ROWS} more"
    yield from shared_devices(timeline)


def _moves(summary: Summary) -> Iterator[Any]:
    moves = summary.moves_by_line
    if not moves:
        return
    left, right = "left", "right"
    table = _table(
        "Who moved what", ("bytes", right), ("times", right), ("way", left), ("where", left),
        ("by", left),
    )  # fmt: skip
    for each in moves[:ROWS]:
        way = f"{each.source} -> {each.target}"
        by = place(each.by) if each.by else each.op
        row = (sentences.size(each.nbytes), each.count, way, place(each.site or each.by), by)
        table.add_row(*_cells(*row))
    yield table
    if len(moves) > ROWS:
        yield f"  and {len(moves) - ROWS} more lines that moved something"


def _devices(summary: Summary, timeline: RunTimeline, bars: int) -> Iterator[Any]:
    uses = summary.alive_by_device
    if not uses:
        return
    curves = {curve.device: curve for curve in summary.bytes_over_time(bars)}
    # The table of what filled a device counts more: tensors that no event tells of.
    seen_only = ", as far as storages were seen" * any(map(filled_of, summary.errors))
    table = _table(
        f"Bytes by device{seen_only}", ("device", "left"), ("at the end", "right"),
        ("storages", "right"), ("most", "right"), ("over time", "left"), ("largest", "left"),
    )  # fmt: skip
    for use in uses:
        curve = curves.get(use.device)
        line = _sparkline(curve.peaks) if curve else ""
        largest = ", ".join(timeline.name(each) for each in use.largest[:2])
        sizes = sentences.size(use.nbytes), use.count, sentences.size(use.peak)
        row = (use.device, *sizes, line, largest)
        table.add_row(*_cells(*row))
    yield table


def _placements(timeline: RunTimeline) -> Iterator[Any]:
    for event, rows, differing in placed(timeline):
        table = _table(
            f"Placement of {event.facts.get('model')} at {_where(event)}", ("modules", "left"),
            ("declared", "left"), ("is on", "left"), ("bytes", "right"), ("brought by", "left"),
        )  # fmt: skip
        for row in rows[:ROWS]:
            lies = row.lies or "-"
            size = sentences.size(row.nbytes) if row.nbytes else ""
            table.add_row(*_cells(row.modules, row.declared, lies, size, row.hooks))
        yield table
        if len(rows) > ROWS:
            yield f"  and {len(rows) - ROWS} more"
        yield from (inert(f"  differs: {each}") for each in differing[:ROWS])


def _sparkline(values: tuple[int, ...]) -> str:
    top = max(values, default=0)
    return "".join(BARS[min(7, value * 8 // (top + 1))] if value else " " for value in values)


def _phases(summary: Summary) -> Iterator[Any]:
    phases = [each for each in summary.phases if each.depth == 0]
    if not phases:
        return
    table = _table(
        "Phases", ("phase", "left"), ("began", "right"), ("took", "right"), ("most bytes", "left")
    )
    for each in phases[:ROWS]:
        peaks = ", ".join(f"{device} {sentences.size(n)}" for device, n in each.peaks.items() if n)
        took = f"{each.end - each.start:.3f} s"
        table.add_row(*_cells(each.name, f"{each.start:.3f} s", took, peaks))
    yield table
    if len(phases) > ROWS:
        yield f"  and {len(phases) - ROWS} more"


def _meetings(summary: Summary, timeline: RunTimeline) -> Iterator[Any]:
    if not summary.meetings:
        return
    table = _table("Operations on mixed devices", ("operation", "left"), ("devices", "left"),
                   ("where", "left"), ("tensor", "left"))  # fmt: skip
    for event in summary.meetings[:ROWS]:
        devices = ", ".join(map(str, event.facts.get("devices", ())))
        odd = timeline.name(event.storage) if event.storage else ""
        table.add_row(*_cells(event.op, devices, _where(event), odd))
    yield table


def _errors(summary: Summary) -> Iterator[Any]:
    if not summary.errors:
        return
    table = _table("Exceptions seen", ("type", "left"), ("operation", "left"), ("where", "left"),
                   ("message", "left"))  # fmt: skip
    seen = Counter(map(_error, summary.errors))
    for row, times in list(seen.items())[:ROWS]:
        *cells, message = row
        many = f" ({times} times)" if times > 1 else ""
        table.add_row(*_cells(*cells, message + many))
    yield table


def _filled(summary: Summary) -> Iterator[Any]:
    """What lay on a device when it gave no more memory, as the error counts it."""
    for event in summary.errors[:ROWS]:
        if not (filled := filled_of(event)):
            continue
        nbytes = memory(sum(each["bytes"] for each in filled))
        table = _table(
            f"{nbytes} filled the device at {_where(event)}", ("bytes", "right"),
            ("kind", "left"), ("what", "left"), ("made at", "left"), ("grows", "left"),
        )  # fmt: skip
        for row in memory_table.table(filled):
            table.add_row(*_cells(*row.cells))
        yield table


def _error(event: Event) -> tuple[str, ...]:
    assert event.did is Did.ERROR
    message = str(event.facts.get("message", "")).partition("\n")[0]
    message = f"{message[:200]} ..." if len(message) > 200 else message
    return str(event.facts.get("type")), event.op, _where(event), message


def _where(event: Event) -> str:
    at = place(event.site or event.by)
    return at if event.process == "main" else f"{at} ({event.process})"


def move_line(each: Any) -> str:
    times = f" in {each.count} moves" if each.count > 1 else ""
    way = f"{each.source} -> {each.target}"
    return f"{sentences.size(each.nbytes):>9}  {way}{times}  {place(each.site or each.by)}"
