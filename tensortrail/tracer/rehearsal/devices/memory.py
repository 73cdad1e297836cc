"""Each simulated device has memory, accounted by storage, with a limit if one was asked for."""

from __future__ import annotations

import re
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from tensortrail.rules.shared.sizes import dimensions
from tensortrail.rules.shared.sizes import memory as told
from tensortrail.tracer.identity.sites import frames
from tensortrail.tracer.rehearsal.devices.filled_by import Made, Piece, filled
from tensortrail.tracer.rehearsal.lacks import HostTooSmall
from tensortrail.tracer.rehearsal.streams.clocks import Order

BLOCK = 512
"""A GPU's allocator gives memory in blocks of this size."""
HOLDERS_SHOWN = 8
RefusedMemory: type[Exception] = torch.OutOfMemoryError


class Held(weakref.ref):  # type: ignore[type-arg]
    """A storage that lies on a simulated device."""

    __slots__ = (
        "charged", "dtype", "index", "key", "made", "nbytes", "shape", "step", "time", "uses",
    )  # fmt: skip
    key: int
    index: int
    nbytes: int
    dtype: torch.dtype
    shape: tuple[int, ...] | None
    time: int
    """In the device's default stream, when it was made."""
    charged: bool
    """Whether it counts in the account of its device."""
    made: Made
    """The user's line that asked for it."""
    step: int
    """How many steps of optimizers were over then."""
    uses: Any
    """What streams did with it, once there are several."""


@dataclass(slots=True)
class Count:
    current: int = 0
    peak: int = 0
    allocated: int = 0
    freed: int = 0

    def add(self, amount: int) -> None:
        self.current += amount
        self.allocated += amount
        if self.current > self.peak:
            self.peak = self.current

    def take(self, amount: int) -> None:
        self.current -= amount
        self.freed += amount


class Memory:
    def __init__(self, count: int, size: int, limited: bool, order: Order) -> None:
        self.size = size
        self._order = order
        self.usable = [size if limited else None for _ in range(count)]
        """Bytes a device gives at most; None where going over is not rehearsed."""
        self.bytes = [Count() for _ in range(count)]
        self.blocks = [Count() for _ in range(count)]
        self.refused = [0] * count
        self.names: Callable[[], Callable[[Any], str]] = lambda: lambda storage: ""
        """Gives what the trail calls a storage; asked when memory is refused."""
        self.born: Callable[[Held, bool], None] | None = None
        self.died: Callable[[Held], None] | None = None
        """Told what memory is given, and whether something is written there; what comes back."""
        self.step = 0
        """How many steps of optimizers are over."""
        self._held: dict[int, Held] = {}
        self._lock = threading.RLock()

    def index_of(self, storage: Any) -> int | None:
        """The device the storage lies on; None for the CPU."""
        held = self._held.get(storage._cdata)
        return held.index if held is not None else None

    def held(self, storage: Any) -> Held | None:
        return self._held.get(storage._cdata)

    def ask(self, index: int, nbytes: int) -> None:
        """Raise as a GPU would if this much more does not fit."""
        usable = self.usable[index]
        if usable is not None and self.bytes[index].current + _blocks(nbytes) > usable:
            raise self._refused(index, nbytes)

    def host_refused(self, index: int, error: RuntimeError) -> Exception | None:
        """The host itself lacks the memory: what a GPU would have said of so many bytes."""
        found = re.search(r"you tried to allocate (\d+) bytes", str(error))
        if found is None:
            return None
        if self.bytes[index].current + _blocks(int(found[1])) > self.size:
            return self._refused(index, int(found[1]))
        return HostTooSmall(f"this machine has too little memory for the rehearsal: {error}")

    def hold(self, storage: Any, index: int, tensor: torch.Tensor | None) -> None:
        """The tensor says what the bytes are; they may come before it."""
        key = storage._cdata
        known = self._held.get(key)
        if known is not None:
            if known.shape is None and tensor is not None:
                known.dtype, known.shape = tensor.dtype, tensor.shape
            return
        nbytes = storage.nbytes()
        with self._lock:
            if self.usable[index] is not None:
                self.ask(index, nbytes)
            held = Held(storage, self._freed)
            held.key, held.index, held.nbytes = key, index, _blocks(nbytes)
            held.dtype = torch.uint8 if tensor is None else tensor.dtype
            held.shape = None if tensor is None else tensor.shape
            held.charged = True
            held.made, held.step = _made_here(), self.step
            queue = self._order.queue(index)
            held.time, held.uses = queue.clock[queue.number], None
            self._held[key] = held
            self.bytes[index].add(held.nbytes)
            self.blocks[index].add(1)
        if self.born is not None:
            self.born(held, True)

    def resized(self, storage: Any) -> None:
        with self._lock:
            held = self._held.get(storage._cdata)
            more = (
                _blocks(storage.nbytes()) - held.nbytes if held is not None and held.charged else 0
            )
            if held is not None and more:
                count = self.bytes[held.index]
                count.take(held.nbytes)
                count.add(held.nbytes + more)
                if self.died is not None:
                    self.died(held)
                held.nbytes += more
                if self.born is not None and more > 0:
                    self.born(held, False)

    def reset_peak(self, index: int) -> None:
        for count in (self.bytes[index], self.blocks[index]):
            count.peak = count.current

    def reset_totals(self, index: int) -> None:
        for count in (self.bytes[index], self.blocks[index]):
            count.allocated, count.freed = count.current, 0

    def standing(self) -> list[Held]:
        """What is charged now."""
        return [held for held in list(self._held.values()) if held.charged]

    def forgive(self, left: list[Held]) -> None:
        """These count no more, though they are still there."""
        with self._lock:
            for held in left:
                if held.charged and self._held.get(held.key) is held:
                    held.charged = False
                    self.bytes[held.index].take(held.nbytes)
                    self.blocks[held.index].take(1)

    def _freed(self, held: Held) -> None:
        if self._held.get(held.key) is held:
            del self._held[held.key]
            if held.charged:
                self.bytes[held.index].take(held.nbytes)
                self.blocks[held.index].take(1)
            if self.died is not None:
                self.died(held)

    def _refused(self, index: int, nbytes: int) -> Exception:
        self.refused[index] += 1
        used = self.bytes[index].current
        free, usable = max(0, self.size - used), self.usable[index]
        allowed = f"{told(usable)} allowed; " if usable not in (None, self.size) else ""
        error = RefusedMemory(
            f"CUDA out of memory. Tried to allocate {told(_blocks(nbytes))}. GPU {index} has a "
            f"total capacity of {told(self.size)} of which {told(free)} is free. Including "
            f"non-PyTorch memory, this process has {told(used)} memory in use. {allowed}Of the "
            f"allocated memory {told(used)} is allocated by PyTorch, and 0 bytes is reserved by "
            f"PyTorch but unallocated.\nRehearsed on a simulated device.{self._most(index)}"
        )
        error.__dict__["filled"] = filled(self._pieces(index), self.step)
        return error

    def _most(self, index: int) -> str:
        rows = [f"\n  {told(nbytes):>12}  {what}" for nbytes, what in self.holders(index)]
        return " Most of it is held by:" + "".join(rows) if rows else ""

    def _pieces(self, index: int) -> Iterator[Piece]:
        for held in list(self._held.values()):
            if held.index == index and held.charged:
                what = _what(held)
                yield Piece(
                    key=held.key, nbytes=held.nbytes, step=held.step, made=held.made, what=what
                )

    def holders(self, index: int) -> list[tuple[int, str]]:
        """Who holds most: by name where there is one, others of the same kind together."""
        total: dict[str, list[int]] = {}
        name_of = self.names()
        for held in list(self._held.values()):
            storage = held()
            if held.index == index and held.charged and storage is not None:
                kind = _what(held)
                name = name_of(storage)
                total.setdefault(f"{name} ({kind})" if name else kind, []).append(held.nbytes)
        rows = [
            (sum(sizes), what if len(sizes) == 1 else f"{len(sizes)} x {what}")
            for what, sizes in total.items()
        ]
        return sorted(rows, reverse=True)[:HOLDERS_SHOWN]


def _what(held: Held) -> str:
    sizes = (held.nbytes,) if held.shape is None else held.shape
    return f"{str(held.dtype)[6:]} {dimensions(sizes)}"


def _made_here() -> Made:
    user, _ = frames(sys._getframe(1))
    return (user.f_code, user.f_lineno) if user is not None else (None, 0)


def _blocks(nbytes: int) -> int:
    return -(-nbytes // BLOCK) * BLOCK
