"""What lies on each simulated device: accounted by storage, with a limit if one was asked for."""

from __future__ import annotations

import re
import threading
import weakref
from typing import Any

import torch

BLOCK = 512
"""A GPU's allocator gives memory in blocks of this size."""
HOLDERS_SHOWN = 8
RefusedMemory: type[Exception] = torch.OutOfMemoryError


class Held(weakref.ref):  # type: ignore[type-arg]
    """A storage that lies on a simulated device."""

    __slots__ = ("index", "key", "nbytes", "what")
    key: int
    index: int
    nbytes: int
    what: str


class Memory:
    def __init__(self, count: int, size: int, limited: bool) -> None:
        self.size = size
        self.limited = limited
        self.allocated = [0] * count
        self.peak = [0] * count
        self.allocations = [0] * count
        self._held: dict[int, Held] = {}
        self._lock = threading.RLock()

    def index_of(self, storage: Any) -> int | None:
        """Which device the storage lies on; None for the host."""
        held = self._held.get(storage._cdata)
        return held.index if held is not None else None

    def ask(self, index: int, nbytes: int) -> None:
        """Raise as a GPU would if this much more does not fit."""
        needed = _blocks(nbytes)
        if self.limited and self.allocated[index] + needed > self.size:
            raise RefusedMemory(self._refusal(index, needed))

    def host_refused(self, index: int, error: RuntimeError) -> Exception | None:
        """The host itself lacks the memory: what a GPU would have said of so many bytes."""
        found = re.search(r"you tried to allocate (\d+) bytes", str(error))
        if found is None:
            return None
        if self.allocated[index] + _blocks(int(found[1])) > self.size:
            return RefusedMemory(self._refusal(index, int(found[1])))
        return MemoryError(f"this machine has too little memory for the rehearsal: {error}")

    def hold(self, storage: Any, index: int, what: str) -> None:
        key = storage._cdata
        with self._lock:
            if key in self._held:
                return
            nbytes = _blocks(storage.nbytes())
            self.ask(index, storage.nbytes())
            held = Held(storage, self._freed)
            held.key, held.index, held.nbytes, held.what = key, index, nbytes, what
            self._held[key] = held
            self.allocated[index] += nbytes
            self.allocations[index] += 1
            self.peak[index] = max(self.peak[index], self.allocated[index])

    def resized(self, storage: Any) -> None:
        with self._lock:
            held = self._held.get(storage._cdata)
            if held is not None:
                nbytes = _blocks(storage.nbytes())
                self.allocated[held.index] += nbytes - held.nbytes
                held.nbytes = nbytes
                self.peak[held.index] = max(self.peak[held.index], self.allocated[held.index])

    def reset_peak(self, index: int) -> None:
        self.peak[index] = self.allocated[index]

    def _freed(self, held: Held) -> None:
        if self._held.get(held.key) is held:
            del self._held[held.key]
            self.allocated[held.index] -= held.nbytes

    def _refusal(self, index: int, needed: int) -> str:
        free = max(0, self.size - self.allocated[index])
        used = self.allocated[index]
        return (
            f"CUDA out of memory. Tried to allocate {_told(needed)}. GPU {index} has a total "
            f"capacity of {_told(self.size)} of which {_told(free)} is free. Including non-PyTorch "
            f"memory, this process has {_told(used)} memory in use. Of the allocated memory "
            f"{_told(used)} is allocated by PyTorch, and 0 bytes is reserved by PyTorch but "
            f"unallocated.\nRehearsed on a simulated device. Most of it is held by:\n"
            + "\n".join(f"  {_told(n):>12}  {what}" for n, what in self.holders(index))
        )

    def holders(self, index: int) -> list[tuple[int, str]]:
        """Who holds most, tensors of the same kind together."""
        total: dict[str, list[int]] = {}
        for held in list(self._held.values()):
            if held.index == index:
                total.setdefault(held.what, []).append(held.nbytes)
        rows = [
            (sum(sizes), what if len(sizes) == 1 else f"{len(sizes)} x {what}")
            for what, sizes in total.items()
        ]
        return sorted(rows, reverse=True)[:HOLDERS_SHOWN]


def _blocks(nbytes: int) -> int:
    return -(-nbytes // BLOCK) * BLOCK


def _told(nbytes: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if nbytes >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} bytes"
