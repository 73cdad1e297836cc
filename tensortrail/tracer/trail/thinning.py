"""A trail that nears its size limit keeps the first and last event of every storage."""

from __future__ import annotations

from collections import Counter

from tensortrail.rules.timeline import Did
from tensortrail.tracer.trail.layout import CODE, Row

ALWAYS = {
    CODE[did]
    for did in (Did.PHASE, Did.ERROR, Did.MEET, Did.WORKER, Did.PENDING, Did.MODULE, Did.UNWRITTEN)
}
FREE = CODE[Did.FREE]
FULL_SHARE = 0.5
FIRST_AND_LAST_SHARE = 0.75
RARE_SHARE = 0.85


class Thinner:
    """Up to half of the limit everything is written. From there on the events of a storage wait
    for the next one of it, which takes their place. At three quarters new storages are no longer
    told of; only errors, phases and the first operations on mixed devices are still written, for a
    tenth more. The rest is for what waited."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.active = False
        self.full = False
        self.dropped: Counter[int] = Counter()
        self._shut = False
        self._fresh: set[int] = set()
        self._waiting: dict[int, Row] = {}

    def began(self, storage: int) -> bool:
        """Whether a new storage is still written down."""
        if self.active and not self.full:
            self._fresh.add(storage)
        return not self.full

    def grown_to(self, size: int) -> None:
        self.active = size > self.limit * FULL_SHARE
        self.full = size > self.limit * FIRST_AND_LAST_SHARE
        self._shut = size > self.limit * RARE_SHARE

    def thinned(self, row: Row) -> list[Row]:
        """The rows to write now."""
        code, storage = row[0], row[4]
        if code in ALWAYS and not self._shut:
            return [row]
        if storage in self._fresh:
            self._fresh.discard(storage)
            return [row]
        before = self._waiting.pop(storage, None)
        if before is not None and code == FREE and not self._shut:
            return [before, row]
        if not storage or (self.full and before is None):
            self.dropped[code] += 1
            return []
        if code == FREE and not self._shut:
            return [row]
        if before is not None:
            self.dropped[before[0]] += 1
        self._waiting[storage] = row
        return []

    def lasts(self) -> list[Row]:
        """What waited, to be written at the end."""
        waiting = sorted(self._waiting.values(), key=lambda row: (row[1], row[4]))
        self._waiting.clear()
        return waiting
