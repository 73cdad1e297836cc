"""Writes one process's trail. Nothing here may raise into the traced program."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import zlib
from collections.abc import Mapping
from typing import Any

import msgpack

from tensortrail.tracer.trail.layout import (
    CODE,
    CONTEXT,
    FRAME,
    MAGIC,
    NAME,
    SITE,
    STORAGE,
    TEXT,
    Row,
)
from tensortrail.tracer.trail.thinning import Thinner

ROWS_A_FRAME = 4096
FLUSH_AFTER = 100_000  # microseconds


class TrailWriter:
    """Numbers texts, sites and storages, gathers rows and appends them to the file in frames."""

    def __init__(
        self, path: str, header: Mapping[str, Any], limit: int, first_storage: int = 1
    ) -> None:
        self.path = path
        self.trouble = ""
        """Why nothing is written any more; empty while all is well."""
        self.fault = ""
        """The first fault of the tracer's own, which the program did not notice."""
        self.events = 0
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        self._began = time.perf_counter_ns()
        self._rows: list[Row] = []
        self._due = FLUSH_AFTER
        self._lock = threading.RLock()
        self._texts: dict[str, int] = {}
        self._sites: dict[tuple[Any, ...], int] = {}
        self._contexts: dict[tuple[str, str], int] = {}
        self.next_storage = first_storage
        self._written = 0
        self._flushing = False
        self._pack = msgpack.Packer(use_bin_type=True, unicode_errors="replace").pack
        self._thinner = Thinner(limit)
        self._append(MAGIC)
        self._frame([{**header, "start": time.time()}])
        self.text("")

    def text(self, text: str) -> int:
        number = self._texts.get(text)
        if number is None:
            with self._lock:
                number = self._texts.get(text)
                if number is None:
                    number = len(self._texts)
                    self._rows.append((TEXT, text))
                    self._texts[text] = number
        return number

    def site(self, file: str, line: int, function: str, by: tuple[str, int, str]) -> int:
        key = (file, line, function, *by)
        number = self._sites.get(key)
        if number is None:
            below = (self.text(by[0]), by[1], self.text(by[2]))
            row = (SITE, self.text(file), line, self.text(function), *below)
            with self._lock:
                number = self._sites.get(key)
                if number is None:
                    number = len(self._sites) + 1
                    self._rows.append(row)
                    self._sites[key] = number
        return number

    def context(self, thread: str, phase: str) -> int:
        number = self._contexts.get((thread, phase))
        if number is None:
            row = (CONTEXT, self.text(thread), self.text(phase))
            with self._lock:
                number = self._contexts.get((thread, phase))
                if number is None:
                    number = len(self._contexts)
                    self._rows.append(row)
                    self._contexts[thread, phase] = number
        return number

    def storage(
        self, device: str, nbytes: int, dtype: str, shape: tuple[int, ...], type_name: str
    ) -> int:
        with self._lock:
            number = self.next_storage
            self.next_storage += 1
        self.again(number, device, nbytes, dtype, shape, type_name)
        return number

    def again(
        self, number: int, device: str, nbytes: int, dtype: str, shape: tuple[int, ...], kind: str
    ) -> None:
        """Describe a storage that has its number already: a forked child knows its parent's."""
        if self._thinner.began(number):
            row = (STORAGE, number, self.text(device), nbytes, self.text(dtype))
            self._rows.append((*row, shape, self.text(kind)))

    def name(self, storage: int, name: str) -> None:
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
        if self._thinner.active:
            rows += self._thinner.thinned(row)
        else:
            rows.append(row)
        if len(rows) >= ROWS_A_FRAME or now >= self._due:
            self.flush()

    def flush(self) -> None:
        if self._flushing:  # a weak reference died while a frame was packed
            return
        with self._lock:
            self._flushing = True
            self._due = (time.perf_counter_ns() - self._began) // 1000 + FLUSH_AFTER
            batch = self._rows[:]
            # In place: other threads may append to this very list meanwhile.
            del self._rows[: len(batch)]
            if batch:
                self._frame(batch)
            self._thinner.grown_to(self._written)
            self._flushing = False

    def close(self) -> None:
        with self._lock:
            if self._file < 0:
                return
            self._rows += self._thinner.lasts()
            self.flush()
            dropped = {DID[code]: n for code, n in sorted(self._thinner.dropped.items())}
            self._frame([{"end": time.time(), "events": self.events, "dropped": dropped}])
            os.close(self._file)
            self._file = -1

    def abandon(self) -> None:
        """In a forked child: the file is the parent's."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        self._rows.clear()

    def _frame(self, rows: list[Any]) -> None:
        try:
            payload = self._pack(rows)
        except (TypeError, ValueError, OverflowError) as error:
            self.trouble = self.trouble or f"events could not be packed: {error}"
            return
        self._append(FRAME.pack(len(payload), zlib.crc32(payload)) + payload)

    def _append(self, data: bytes) -> None:
        if self._file < 0 or self.trouble:
            return
        try:
            start = self._written
            while data:
                sent = os.write(self._file, data)
                data = data[sent:]
                self._written += sent
        except OSError as error:
            self.trouble = f"{self.path}: {error.strerror or error}"
            # A frame half written would only be reported as damage.
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, start)


DID = {code: did.value for did, code in CODE.items()}
