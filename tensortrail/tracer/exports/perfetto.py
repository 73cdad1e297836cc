"""The Perfetto export holds Chrome trace events, for ui.perfetto.dev.

A process is a process, a thread a track, a phase a slice; what happened to tensors are instants;
live bytes are a counter for each device."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

from tensortrail.collector import without_collector
from tensortrail.findings import Site
from tensortrail.rules.timeline import Did, Event
from tensortrail.tracer.exports.output import Text, opened
from tensortrail.tracer.exports.rows import to_json
from tensortrail.tracer.reading import sentences
from tensortrail.tracer.reading.live_bytes import Level
from tensortrail.tracer.reading.storage_names import names
from tensortrail.tracer.reading.summary import Summary, bytes_over_time
from tensortrail.tracer.reading.timeline import RunTimeline

INSTANTS = (
    Did.MOVE, Did.SAVE, Did.LOAD, Did.ERROR, Did.MEET, Did.STAGE, Did.PENDING, Did.MODULE,
    Did.UNWRITTEN, Did.POINTER, Did.WORKER,
)  # fmt: skip
COUNTER_STEPS = 10_000

Traced = dict[str, Any]


@without_collector()
def write(timeline: RunTimeline, out: Text) -> None:
    with opened(out) as file:
        file.write('{"displayTimeUnit":"ms","traceEvents":[')
        separator = "\n"
        for each in _events(timeline):
            file.write(separator + to_json(each))
            separator = ",\n"
        file.write("\n]}\n")


def _events(timeline: RunTimeline) -> Iterator[Traced]:
    summary = Summary(timeline)
    tracks = Tracks(timeline)
    yield from tracks.processes()
    for phase in summary.phases:
        place = yield from tracks.place(phase.process, phase.thread)
        length = _micros(phase.end - phase.start)
        yield {"ph": "X", "name": phase.name, "cat": "phase", "ts": _micros(phase.start),
               "dur": length, **place, "args": {"peaks": phase.peaks}}  # fmt: skip
    for event in timeline.iterate(*INSTANTS):
        place = yield from tracks.place(event.process, event.thread)
        wide = "g" if event.did in (Did.ERROR, Did.MEET) else "t"
        yield {"ph": "i", "s": wide, "cat": event.did.value, "ts": _micros(event.time), **place,
               "name": tracks.title(event), "args": _arguments(event)}  # fmt: skip
    for of in summary.lives:
        text = of.process.part.text
        by_device = {text(device) or "?": level for device, level in of.levels.items()}
        pid = tracks.pids[of.process.label]
        yield from _counters(by_device, summary.seconds, pid)


class Tracks:
    """Numbers processes and threads, and says their names before they are used."""

    def __init__(self, timeline: RunTimeline) -> None:
        self.pids = {each.label: n for n, each in enumerate(timeline.processes, start=1)}
        self._names = {each.label: names(each) for each in timeline.processes}
        self._tids: dict[tuple[str, str], int] = {}

    def processes(self) -> Iterator[Traced]:
        for label, pid in self.pids.items():
            yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": label}}
            yield {"ph": "M", "name": "process_sort_index", "pid": pid, "args": {"sort_index": pid}}

    def place(self, process: str, thread: str) -> Generator[Traced, None, Traced]:
        pid, key = self.pids[process], (process, thread)
        tid = self._tids.get(key)
        if tid is None:
            tid = self._tids[key] = len(self._tids) + 1
            name = {"name": thread or "?"}
            yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": name}
        return {"pid": pid, "tid": tid}

    def title(self, event: Event) -> str:
        return sentences.sentence(
            event,
            lambda each: self._names[each.process].get(each.number) or sentences.described(each),
        )


def _arguments(event: Event) -> Traced:
    storage, other = event.storage, event.other
    found = {
        "op": event.op,
        "line": _place(event.site),
        "by": _place(event.by),
        "storage": storage.number if storage else None,
        "bytes": storage.nbytes if storage else None,
        "dtype": storage.dtype if storage else None,
        "shape": storage.shape if storage else None,
        "from": other.device if other else None,
        "to": storage.device if storage else None,
    }
    return {key: value for key, value in found.items() if value not in (None, "")} | dict(
        event.facts
    )


def _place(site: Site | None) -> str:
    return f"{site.place} {site.function}".strip() if site else ""


def _counters(by_device: dict[str, Level], seconds: float, pid: int) -> Iterator[Traced]:
    for curve in bytes_over_time(by_device, seconds, COUNTER_STEPS):
        before = None
        for step, nbytes in enumerate(curve.peaks):
            if nbytes != before:
                time = _micros(step * seconds / COUNTER_STEPS)
                yield {"ph": "C", "name": f"live bytes {curve.device}", "pid": pid, "ts": time,
                       "args": {"bytes": nbytes}}  # fmt: skip
            before = nbytes


def _micros(seconds: float) -> float:
    return round(seconds * 1e6, 3)
