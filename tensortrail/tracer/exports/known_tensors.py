"""Which tensors of a run have a name to ask for, and where each of them lay last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensortrail.inert import inert
from tensortrail.rules.timeline import Storage
from tensortrail.tracer.reading import sentences
from tensortrail.tracer.reading.assigned_names import assigned
from tensortrail.tracer.reading.storage_names import names
from tensortrail.tracer.reading.timeline import RunTimeline

MOST_SHOWN = 20


def known_tensors(timeline: RunTimeline) -> dict[str, Storage]:
    """The largest first."""
    found = assigned(timeline)
    for process in timeline.processes:
        for number, name in sorted(names(process).items()):
            if (storage := process.storage(number)) is not None:
                found[name] = storage
    return dict(sorted(found.items(), key=lambda each: -each[1].nbytes))


def lines(known: dict[str, Storage]) -> Iterator[str]:
    if not known:
        yield "no tensor of this run has a name: neither a model nor a variable of the program"
        return
    shown = list(known.items())[:MOST_SHOWN]
    width = max(len(name) for name, _ in shown)
    for name, storage in shown:
        what = f"{sentences.described(storage)}, {sentences.size(storage.nbytes)}"
        yield inert(f"{name:{width}}  {storage.device:7} {what}")
    if len(known) > MOST_SHOWN:
        yield f"and {len(known) - MOST_SHOWN} smaller ones"
    yield "ask for one of them: tensortrail why NAME"


def as_dict(known: dict[str, Storage]) -> dict[str, Any]:
    return {
        name: {
            "device": each.device,
            "dtype": each.dtype,
            "shape": list(each.shape),
            "bytes": each.nbytes,
        }
        for name, each in known.items()
    }
