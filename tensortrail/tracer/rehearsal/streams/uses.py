"""What streams did with a storage, as far as somebody may still have to wait for it."""

from __future__ import annotations

from typing import Any, NamedTuple

from tensortrail.tracer.rehearsal.streams.byte_ranges import Region
from tensortrail.tracer.rehearsal.streams.clocks import Order, Queue, is_past

MOST_KEPT = 16


class Use(NamedTuple):
    """What a stream did with bytes of a storage."""

    queue: Queue
    time: int
    does: str
    """`written`, `read`, `freed` or `given away again`"""
    where: Region
    site: int
    op: Any

    @property
    def writes(self) -> bool:
        return self.does == "written"


class Uses:
    """What was done with one storage, as far as somebody may still have to wait for it."""

    __slots__ = ("entry", "home", "kept", "last", "safe")

    def __init__(self, home: Queue) -> None:
        self.home = home
        """The stream its memory goes back to."""
        self.last: list[Use] = []
        self.kept: set[int] = set()
        """The queues that `record_stream` named."""
        self.safe = False
        """Autograd made it, and tells the allocator itself which streams use it."""
        self.entry: Any = None
        """What the trail knows it as; asked for when another stream than its own uses it."""

    def add(self, use: Use) -> None:
        self.last = [each for each in self.last if not _says_more(use, each)][1 - MOST_KEPT :]
        self.last.append(use)

    def open_for(self, order: Order) -> Use | None:
        """The last use on another stream that the next owner of the memory would not wait for."""
        clock = order.begins(self.home).clock
        use: Use
        for use in reversed(self.last):
            known = use.queue is self.home or use.queue.number in self.kept
            if not known and not is_past(clock, use.queue, use.time):
                return use
        return None


def _says_more(use: Use, earlier: Use) -> bool:
    """Who waits for `use` has waited for `earlier`; and it does at least as much."""
    if not use.where.covers(earlier.where):
        return False
    return use.writes or (use.queue is earlier.queue and not earlier.writes)
