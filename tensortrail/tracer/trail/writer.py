"""Writes one process's trail. Nothing here may raise into the traced program, or wait for a lock
of its own: events come from any thread, from signal handlers and from dying objects."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from tensortrail.tracer.trail.file import TrailFile
from tensortrail.tracer.trail.frames import Frames
from tensortrail.tracer.trail.layout import CODE, KIND, MAGIC, NAME, SHORT, STORAGE, SUFFIX, Row
from tensortrail.tracer.trail.numbering import Numbering
from tensortrail.tracer.trail.thinning import Thinner

ROWS_A_FRAME = 4096
FLUSH_AFTER = 100_000  # microseconds
SOON = 20_000
CLOSING_PATIENCE = 5  # seconds
DID = {code: did.value for did, code in CODE.items()}


class TrailWriter(Numbering):
    """Gathers rows and appends them to the file in frames."""

    def __init__(
        self, path: str, header: Mapping[str, Any], limit: int, first_storage: int = 1
    ) -> None:
        super().__init__(time.time())
        self.path = path
        self.fault = ""
        """The first fault of the tracer's own, which the program did not notice."""
        self.events = 0
        self.outcome = ""
        """What ended the program; empty while it runs, and if it ended well."""
        self._file = TrailFile(path)
        self._began = time.perf_counter_ns()
        self._due = FLUSH_AFTER
        self._rows_a_frame = max(16, min(ROWS_A_FRAME, limit // 1000))
        self._longest_short = 2 * self._rows_a_frame
        self._lock = threading.RLock()
        self.storage_numbers = count(first_storage)
        """The numbers of storages to come. Whoever takes one describes the storage, or tells an
        event of a kind that does."""
        self.kinds: dict[Any, int] = {}
        """The kinds of events that this frame has said, by what their callers know them by."""
        self._kind_numbers = count(1)
        self._short: list[int] = []
        """The row of short events that was begun last."""
        self._late: tuple[list[int], int] = [], 0
        """That of the last frame, and its length in there."""
        self.flushed: Callable[[], None] = lambda: None
        """Called after each flush, on the thread that happened to do it."""
        self.thinner = Thinner(limit)
        """While it is active no event is written short: it may have to wait."""
        self._frames = Frames(self._file, limit, self.thinner.dropped, self.failed)
        self._file.append(MAGIC)
        self._frames.note({**header, "start": self.started})

    @property
    def size(self) -> int:
        """Bytes written."""
        return self._file.size

    @property
    def trouble(self) -> str:
        """Why nothing is written any more; empty while all is well."""
        return self._file.trouble

    def failed(self, how: str) -> None:
        """A fault of the tracer's own; the first one is told."""
        self.fault = self.fault or how

    def storage(
        self, device: str, nbytes: int, dtype: str, shape: tuple[int, ...], type_name: str
    ) -> int:
        return self.storage_of(self.description(device, nbytes, dtype, shape, type_name))

    def description(
        self, device: str, nbytes: int, dtype: str, shape: tuple[int, ...], type_name: str
    ) -> Row:
        """What the rows of all storages like this one say, for `storage_of`."""
        return self.text(device), nbytes, self.text(dtype), shape, self.text(type_name)

    def storage_of(self, description: Row) -> int:
        """The number of a new storage."""
        number = next(self.storage_numbers)
        self.describe(number, description)
        return number

    def describe(self, number: int, description: Row) -> None:
        if not self.thinner.active or self.thinner.began(number):
            self._rows.append((STORAGE, number, *description))

    def again(
        self, number: int, device: str, nbytes: int, dtype: str, shape: tuple[int, ...], kind: str
    ) -> None:
        """Describe a storage that has its number already: a forked child knows its parent's."""
        if self.thinner.began(number):
            described = self.description(device, nbytes, dtype, shape, kind)
            self._rows.append((STORAGE, number, *described))

    def name(self, storage: int, name: str) -> None:
        if not self.thinner.full:
            self._rows.append((NAME, storage, self.text(name)))

    def event(
        self,
        code: int,
        context: int,
        site: int,
        storage: int = 0,
        other: int = 0,
        op: int = 0,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """`code` is that of `layout.CODE`."""
        now = (time.perf_counter_ns() - self._began) // 1000
        row: Row
        if facts:
            row = (code, now, context, site, storage, other, op, facts)
        elif other or op:
            row = (code, now, context, site, storage, other, op)
        else:
            row = (code, now, context, site, storage)
        self.events += 1
        rows = self._rows
        if self.thinner.active:
            rows += self.thinner.thinned(row)
        else:
            rows.append(row)
        if len(rows) >= self._rows_a_frame or now >= self._due:
            self.flush()

    def kind(
        self,
        code: int,
        context: int,
        site: int,
        op: int,
        description: Row = (),
        facts: Mapping[str, Any] | None = None,
    ) -> int:
        """The number of a new kind, for `kinds`. With the description of a storage each event of it
        tells of a new one."""
        number = next(self._kind_numbers)
        self._frames.codes[number] = code
        row = KIND, number, code, context, site, op, description
        self._rows.append((*row, facts) if facts else row)
        return number

    def short(self, kind: int, storage: int, other: int = 0) -> None:
        """An event of a kind that this frame has said, while nothing is thinned."""
        now = (time.perf_counter_ns() - self._began) // 1000
        rows, short = self._rows, self._short
        try:
            is_last = rows[-1] is short
        except IndexError:  # another thread has just written them
            is_last = False
        if not is_last:
            short = self._short = [SHORT]
            rows.append(short)
        short += (kind, now, storage, other)
        self.events += 1
        if len(short) >= self._longest_short or now >= self._due:
            self._short = []  # another thread may be at the file, and the row may not grow for ever
            self.flush()

    def flush_before_waiting(self) -> None:
        """Who waits for other processes may wait for ever."""
        now = (time.perf_counter_ns() - self._began) // 1000
        if self._rows and now >= self._due - FLUSH_AFTER + SOON:
            self.flush()

    def flush(self) -> None:
        if self._lock.acquire(blocking=False):  # else another thread is at it
            try:
                self._due = (time.perf_counter_ns() - self._began) // 1000 + FLUSH_AFTER
                self._write_rows()
            finally:
                self._lock.release()
            self.flushed()

    def learn(self, facts: Mapping[str, Any]) -> None:
        """What the header could not know when the file was begun."""
        if self._file.is_open and self._lock.acquire(timeout=CLOSING_PATIENCE):
            try:
                self._frames.note(facts)
            finally:
                self._lock.release()

    def close(self) -> None:
        sole = self._lock.acquire(timeout=CLOSING_PATIENCE)
        try:
            if self._file.is_open:
                self._write_rows()
                self._rows += self.thinner.lasts()
                self._write_rows()
                dropped = {DID[code]: n for code, n in sorted(self.thinner.dropped.items())}
                self._frames.note(
                    {
                        "end": time.time(),
                        "events": self.events,
                        "dropped": dropped,
                        "outcome": self.outcome,
                    }
                )
                self._file.close()
        finally:
            if sole:
                self._lock.release()

    def abandon(self) -> None:
        """A forked child leaves the file to its parent."""
        self._file.close()
        self._rows.clear()

    def _write_rows(self) -> None:
        rows = self._rows
        self.kinds.clear()
        self._write_late()
        while rows:
            batch = rows[: self._rows_a_frame]
            # In place: other threads may append to this very list meanwhile.
            del rows[: len(batch)]
            try:
                self._frames.write(self._ended(batch))
            except BaseException:  # a signal handler's
                rows[:0] = batch
                self._late = [], 0
                raise
            self.thinner.grown_to(self._file.size)
        self._frames.begin()

    def _ended(self, batch: list[Any]) -> list[Row]:
        """Rows to which nothing is added while they are written."""
        ended = [tuple(row) if type(row) is list else row for row in batch]
        for row, written in zip(reversed(batch), reversed(ended), strict=True):
            if row is not written:
                self._late = row, len(written)
                break
        return ended

    def _write_late(self) -> None:
        """Another thread may have been about to add to a row when it was written."""
        short, length = self._late
        if more := short[length:]:
            self._late = short, len(short)
            self._rows.append([SHORT, *more])


def new_writer(
    directory: str, header: Mapping[str, Any], limit: int, first_storage: int = 1
) -> TrailWriter:
    """A trail of this process, in a file that is called after it."""
    rank = header.get("rank")
    stem = f"{time.time_ns() // 1_000_000:x}-{os.getpid()}"
    name = f"{stem}{SUFFIX}" if rank is None else f"rank{rank}-{stem}{SUFFIX}"
    return TrailWriter(os.path.join(directory, name), header, limit, first_storage)
