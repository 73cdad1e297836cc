"""The text report tells a run to people at a terminal."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tensortrail.inert import inert
from tensortrail.plurals import counted
from tensortrail.rules.timeline import Did, Event
from tensortrail.tracer.exports.how_it_went import how_it_went
from tensortrail.tracer.exports.parts_that_ended import parts_that_ended
from tensortrail.tracer.exports.text_of_memory import devices, filled_devices, moves, placements
from tensortrail.tracer.exports.text_table import ROWS, cells, table_of, where
from tensortrail.tracer.reading import sentences
from tensortrail.tracer.reading.ranks.comparison import differences, shared_devices
from tensortrail.tracer.reading.ranks.names import named
from tensortrail.tracer.reading.sentences import place
from tensortrail.tracer.reading.summary import Summary
from tensortrail.tracer.reading.timeline import RunTimeline

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
    yield from moves(summary)
    yield from devices(summary, timeline, BARS_SHOWN if width >= WIDE else BARS_SHOWN // 3)
    yield from placements(timeline)
    yield from _phases(summary)
    yield from _meetings(summary, timeline)
    yield from _errors(summary)
    yield from _ended_parts(timeline)
    yield from filled_devices(summary)


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
        *how_it_went(timeline),
    ]
    dropped = sum(n for part in timeline.parts for n in part.dropped.values())
    if dropped:
        facts.append(f"{counted(dropped, 'event')} dropped at the size limit")
    open_ended = sum(not part.closed for part in timeline.parts)
    if open_ended:
        facts.append(f"{counted(open_ended, 'process')} without a recorded end")
    return Text.assemble((inert(program), "bold"), "\n", (inert(" · ".join(facts)), "dim"))


def _ranks(timeline: RunTimeline) -> Iterator[Any]:
    found = differences(timeline)
    if found:
        table = table_of(
            "Where ranks differ", ("only", "left"), ("where", "left"), ("what", "left")
        )
        for each in found[:ROWS]:
            times = f" and {each.count - 1} more" if each.count > 1 else ""
            table.add_row(*cells(named(each.ranks), place(each.site), each.what + times))
        yield table
        if len(found) > ROWS:
            yield f"  and {len(found) - ROWS} more"
    yield from shared_devices(timeline)


def _phases(summary: Summary) -> Iterator[Any]:
    phases = [each for each in summary.phases if each.depth == 0]
    if not phases:
        return
    table = table_of(
        "Phases", ("phase", "left"), ("began", "right"), ("took", "right"), ("most bytes", "left")
    )
    for each in phases[:ROWS]:
        peaks = ", ".join(f"{device} {sentences.size(n)}" for device, n in each.peaks.items() if n)
        took = f"{each.end - each.start:.3f} s"
        table.add_row(*cells(each.name, f"{each.start:.3f} s", took, peaks))
    yield table
    if len(phases) > ROWS:
        yield f"  and {len(phases) - ROWS} more"


def _meetings(summary: Summary, timeline: RunTimeline) -> Iterator[Any]:
    if not summary.meetings:
        return
    table = table_of("Operations on mixed devices", ("operation", "left"), ("devices", "left"),
                   ("where", "left"), ("tensor", "left"))  # fmt: skip
    for event in summary.meetings[:ROWS]:
        devices = ", ".join(map(str, event.facts.get("devices", ())))
        odd = timeline.name(event.storage) if event.storage else ""
        table.add_row(*cells(event.op, devices, where(event), odd))
    yield table


def _errors(summary: Summary) -> Iterator[Any]:
    if not summary.errors:
        return
    table = table_of("Exceptions seen", ("type", "left"), ("operation", "left"), ("where", "left"),
                   ("message", "left"))  # fmt: skip
    seen = Counter(map(_error, summary.errors))
    for row, times in list(seen.items())[:ROWS]:
        *said, message = row
        many = f" ({times} times)" if times > 1 else ""
        table.add_row(*cells(*said, message + many))
    yield table


def _ended_parts(timeline: RunTimeline) -> Iterator[Any]:
    if ended := parts_that_ended(timeline):
        table = table_of("Threads, tasks and processes that an exception ended", ("", "left"))
        for each in ended[:ROWS]:
            table.add_row(*cells(each))
        yield table


def _error(event: Event) -> tuple[str, ...]:
    assert event.did is Did.ERROR
    message = str(event.facts.get("message", "")).partition("\n")[0]
    message = f"{message[:200]} ..." if len(message) > 200 else message
    return str(event.facts.get("type")), event.op, where(event), message
