"""Writes one process's trail. Nothing here may raise into the traced program, or wait for a lock
of its own: events come from any thread, from signal handlers and from dying objects."""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any

import msgpack

from tensortrail.tracer.patching.signals import let_through
from tensortrail.tracer.trail.file import TrailFile
from tensortrail.tracer.trail.layout import (
    CODE,
    CONTEXT,
    EVENT,
    FREED,
    FREED_KIND,
    KIND,
    LONGEST_FRAME,
    MAGIC,
    NAME,
    SHORT,
    SITE,
    SOURCE,
    STORAGE,
    TEXT,
    Row,
)
from tensortrail.tracer.trail.source_digest import source_digest
from tensortrail.tracer.trail.thinning import Thinner

ROWS_A_FRAME = 4096
FLUSH_AFTER = 100_000  # microseconds
SOON = 20_000
CLOSING_PATIENCE = 5  # seconds
LONGEST_TEXT = 1000
MOST_TEXTS = 200_000
MOST_CONTEXTS = 10_000


class TrailWriter:
    """Numbers texts, sites and storages, gathers rows and appends them to the file in frames."""

    def __init__(
        self, path: str, header: Mapping[str, Any], limit: int, first_storage: int = 1
    ) -> None:
        self.path = path
        self.fault = ""
        """The first fault of the tracer's own, which the program did not notice."""
        self.events = 0
        self.outcome = ""
        """What ended the program; empty while it runs, and if it ended well."""
        self._file = TrailFile(path)
        self._began = time.perf_counter_ns()
        self._rows: list[Any] = []
        self._due = FLUSH_AFTER
        self._limit = limit
        self._rows_a_frame = max(16, min(ROWS_A_FRAME, limit // 1000))
        self._longest_short = 2 * self._rows_a_frame
        self._lock = threading.RLock()
        # A number may be given twice when threads race; the rows of both say the same.
        self._texts: dict[str, int] = {"": 0}
        self._text_numbers = count(1)
        self._sites: dict[tuple[Any, ...], int] = {}
        self._site_numbers = count(1)
        self._sources = {""}
        self._contexts: dict[tuple[str, str], int] = {}
        self._context_numbers = count(1)
        self.storage_numbers = count(first_storage)
        """The numbers of storages to come. Whoever takes one describes the storage, or tells an
        event of a kind that does."""
        self.kinds: dict[Any, int] = {}
        """The kinds of events that this frame has said, by what their callers know them by."""
        self._codes = {FREED: FREED_KIND[0]}
        """What the events of these kinds are."""
        self._kind_numbers = count(1)
        self._short: list[int] = []
        """The row of short events that was begun last."""
        self._late: tuple[list[int], int] = [], 0
        """That of the last frame, and its length in there."""
        self.flushed: Callable[[], None] = lambda: None
        """Called after each flush, on the thread that happened to do it."""
        self.thinner = Thinner(limit)
        """While it is active no event is written short: it may have to wait."""
        self._file.append(MAGIC)
        self._started = time.time()
        self._note({**header, "start": self._started})

    @property
    def size(self) -> int:
        """Bytes written."""
        return self._file.size

    @property
    def trouble(self) -> str:
        """Why nothing is written any more; empty while all is well."""
        return self._file.trouble

    def text(self, text: str) -> int:
        number = self._texts.get(text)
        if number is None:
            if len(self._texts) >= MOST_TEXTS:
                return self.text("...")
            number = self._texts[text] = next(self._text_numbers)
            self._rows.append((TEXT, number, text[:LONGEST_TEXT]))
        return number

    def site(self, file: str, line: int, function: str, by: tuple[str, int, str]) -> int:
        key = (file, line, function, *by)
        number = self._sites.get(key)
        if number is None:
            user, below = (self._source(file), line, self.text(function)), (self.text(by[0]), by[1])
            number = self._sites[key] = next(self._site_numbers)
            self._rows.append((SITE, number, *user, *below, self.text(by[2])))
        return number

    def _source(self, file: str) -> int:
        number = self.text(file)
        if file not in self._sources:
            self._sources.add(file)
            if digest := source_digest(file, self._started):
                self._rows.append((SOURCE, number, digest))
        return number

    def context(self, thread: str, phase: str) -> int:
        number = self._contexts.get((thread, phase))
        if number is None:
            if len(self._contexts) >= MOST_CONTEXTS:
                return 0
            number = self._contexts[thread, phase] = next(self._context_numbers)
            self._rows.append((CONTEXT, number, self.text(thread), self.text(phase)))
        return number

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
        self._codes[number] = code
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
                self._note(facts)
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
                self._note(
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
        # Each frame says its kinds anew: one that is damaged takes no others with it.
        self.kinds.clear()
        self._write_late()
        while rows:
            batch = rows[: self._rows_a_frame]
            # In place: other threads may append to this very list meanwhile.
            del rows[: len(batch)]
            try:
                self._write(self._ended(batch))
            except BaseException:  # a signal handler's
                rows[:0] = batch
                self._late = [], 0
                raise
            self.thinner.grown_to(self._file.size)
        self._codes = {FREED: FREED_KIND[0]}

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

    def _note(self, note: Mapping[str, Any]) -> None:
        """What is said of the file itself comes on top of the limit."""
        self._file.frame(_squeezed(self._packed([note])))

    def _write(self, rows: list[Row]) -> None:
        packed = self._packed(rows)
        if len(packed) <= LONGEST_FRAME:
            payload = _squeezed(packed)
            if self._file.size + len(payload) <= self._limit:
                self._file.frame(payload)
            else:
                self._drop(rows)
        elif len(rows) > 1:
            self._write(rows[: len(rows) // 2])
            self._write(rows[len(rows) // 2 :])
        else:
            self._drop(rows)

    def _packed(self, rows: list[Any]) -> bytes:
        try:
            return _pack(rows)
        except UNPACKABLE as error:
            let_through(error)
            self.fault = self.fault or f"an event could not be written: {error}"
            sound = [row for row in rows if _can_be_packed(row)]
            self._drop(row for row in rows if row not in sound)
            return _pack(sound)

    def _drop(self, rows: Iterable[Row]) -> None:
        dropped = self.thinner.dropped
        for row in rows:
            if row[0] >= EVENT:
                dropped[row[0]] += 1
            elif row[0] == SHORT:
                dropped.update(self._codes[kind] for kind in row[1::4] if kind in self._codes)


UNPACKABLE = (TypeError, ValueError, OverflowError, RecursionError)
"""What msgpack raises. Anything else is a signal handler's, and the program's affair."""
DID = {code: did.value for did, code in CODE.items()}


def _pack(rows: Any) -> bytes:
    packed: bytes = msgpack.packb(rows, unicode_errors="replace", default=_type_name)
    return packed


def _squeezed(packed: bytes) -> bytes:
    return zlib.compress(packed, 1)


def _type_name(thing: Any) -> str:
    """The type's name, for what msgpack does not know and integers that are too large for it."""
    return type(thing).__name__


def _can_be_packed(row: Row) -> bool:
    try:
        _pack(row)
    except Exception as error:
        let_through(error)
        return False
    return True
