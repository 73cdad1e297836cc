"""What fills a device, by the class of its model, where not every byte is known."""

from __future__ import annotations

from collections import Counter

from tensortrail.rules.shared.sizes import memory
from tensortrail.tracer.reading.live_bytes import lives
from tensortrail.tracer.reading.timeline import RunTimeline

MOST_HOLDERS = 4


def bytes_by_model(timeline: RunTimeline, device: str) -> tuple[str, ...]:
    """What lies there, by the class of its model, most bytes first."""
    total: Counter[str] = Counter()
    for life in lives(timeline):
        for number in life.born.keys() - life.freed.keys():
            storage = life.process.storage(number)
            if storage is not None and life.process.part.text(life.device(number)) == device:
                named = timeline.is_named(storage)
                root = timeline.name(storage).partition(".")[0] if named else ""
                total[root or "tensors without a name"] += life.last_bytes(number)
    return tuple(f"{memory(n)} {name}" for name, n in total.most_common(MOST_HOLDERS) if n)
