"""Fresh memory (`empty`, `to_empty`, a storage that grew) is noticed when it is read before anybody
wrote into it.

Memory is known by its storage: which tensor, parameter or view reaches it makes no difference. A
tensor that is given to somebody who may write without being seen is no longer watched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch._C import DisableTorchFunction

from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.inner_tensors import PLAIN
from tensortrail.tracer.identity.storages import Entry
from tensortrail.tracer.noticing.notes import Notes
from tensortrail.tracer.noticing.operands import tensors_in
from tensortrail.tracer.noticing.operation_kinds import SAME_VALUES, is_basic, kind_of

MOST_WATCHED = 100_000
LOOKS_FOR_A_TENSOR = 10_000
LOOKS_FOR_A_MODULE = 200_000
"""How many operations are looked at before the watch ends: looking at each costs time."""
AT_THE_END = "the end of the run"
Then = Callable[[Entry, Any], None]
"""Given the storage, and the operation that read it."""


class Fresh:
    """A storage into which nobody has written everything yet."""

    __slots__ = ("entry", "nbytes", "regions", "then", "version", "written")

    def __init__(self, entry: Entry, nbytes: int, version: int | None) -> None:
        self.entry = entry
        self.then: Then | None = None
        """What is done when it is read, if its values are not the ones that were meant."""
        self.nbytes = nbytes
        self.version = version
        """How often the tensor had been written in place by then, by torch's own count."""
        self.written = 0
        """Bytes that were written at most."""
        self.regions: set[Any] = set()

    def fill(self, part: torch.Tensor) -> bool:
        """Whether all of it may be written now that this part is."""
        with DisableTorchFunction():
            region = (part.storage_offset(), part.shape, part.stride())
            nbytes = part.numel() * part.element_size()
        if region not in self.regions:
            self.regions.add(region)
            self.written += nbytes
        return self.written >= self.nbytes


class FreshMemory:
    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._fresh: dict[int, Fresh] = {}
        self._away = 0
        self._left = 0
        self.unsaved: dict[int, str] = {}
        """Storages of buffers that no state dict has, with the class of their module."""
        self.gave_up = False
        """So many operations were looked at that no more are."""

    @property
    def some(self) -> bool:
        return bool(self._fresh)

    # --- what is fresh -------------------------------------------------------------------
    def made(self, tensor: Any, looks: int = LOOKS_FOR_A_TENSOR) -> None:
        """Of a wrapper the first part: others, as scales, may be made with values."""
        entry = self._notes.storages.entry(tensor)
        if entry is not None:
            self.grown(entry, 0, looks, version_of(tensor) if type(tensor) in PLAIN else None)

    def made_module(self, tensors: Iterable[Any]) -> None:
        for tensor in tensors:
            if type(tensor) in PLAIN or self._parts(tensor):  # wrappers may keep their old parts
                self.made(tensor, LOOKS_FOR_A_MODULE)

    def grown(
        self, entry: Entry, before: int, looks: int, version: int | None = None, nbytes: int = 0
    ) -> None:
        """The storage has bytes that it had not before, and kept those."""
        nbytes = nbytes or entry.described.nbytes
        if nbytes and entry.device != "meta" and len(self._fresh) < MOST_WATCHED:
            fresh = self._fresh[entry.number] = Fresh(entry, nbytes, version)
            fresh.written = before
            self.goes_on(looks)
            self._notes.changed()

    def goes_on(self, looks: int) -> None:
        """So many operations more are looked at, if any memory is watched."""
        self._left = max(self._left, looks)

    def awaited(self, entry: Entry, then: Then) -> None:
        """Memory with values that are not the ones that were meant, until somebody writes them."""
        known = self._fresh.get(entry.number)
        if known is None or known.then is not None:
            self.grown(entry, 0, LOOKS_FOR_A_MODULE)
            if (known := self._fresh.get(entry.number)) is not None:
                known.then = then

    def copied(self, source: Entry | None, copy: Entry | None) -> None:
        """A copy of memory has no more values than that has."""
        known = self._fresh.get(source.number) if source is not None else None
        if known is None or copy is None or copy is source:
            return
        if known.then is not None:
            self.awaited(copy, known.then)
        elif copy.described.nbytes > known.written:
            self.grown(copy, known.written, LOOKS_FOR_A_TENSOR)

    def held(self, tensor: Any) -> None:
        """A tensor got this storage: from now on its own count tells whether it was written."""
        for part, fresh in self._parts(tensor) if self._fresh else ():
            fresh.version = version_of(part)

    # --- what no longer is ---------------------------------------------------------------
    def written(self, tensor: Any) -> None:
        if self._fresh:
            self.given((tensor,))

    def given(self, tensors: Iterable[Any]) -> None:
        """To somebody who writes without a call that could be seen."""
        for tensor in tensors if self._fresh else ():
            for _, fresh in self._parts(tensor):
                self._forget(fresh)

    def storage_written(self, storage: Any) -> None:
        entry = self._notes.storages.of_storage(storage) if self._fresh else None
        if entry is not None:
            self.freed(entry.number)

    def freed(self, number: int) -> None:
        if self._fresh and self._fresh.pop(number, None) is not None:
            self._notes.changed()

    def _forget(self, fresh: Fresh) -> None:
        self.freed(fresh.entry.number)

    @contextmanager
    def looking_away(self) -> Iterator[None]:
        """What touches fresh memory now changes nothing in it."""
        self._away += 1
        try:
            yield
        finally:
            self._away -= 1

    # --- who reads it --------------------------------------------------------------------
    def is_fresh(self, entry: Entry) -> bool:
        known = self._fresh.get(entry.number)
        return known is not None and not known.written

    def awaits(self, entry: Entry) -> bool:
        """Nobody has read or written what was not meant."""
        known = self._fresh.get(entry.number)
        return known is not None and known.then is not None

    def read(self, entry: Entry, op: Any) -> None:
        """Nobody had written into it, in whatever way."""
        known = self._fresh.get(entry.number)
        self.freed(entry.number)
        if known is not None and known.then is not None:
            known.then(entry, op)
            return
        facts: dict[str, Any] = {"others": True} if _others_may_write() else {}
        if entry.number in self.unsaved:
            facts["unsaved"] = self.unsaved[entry.number]
        self._notes.note(Did.UNWRITTEN, entry, op=op, facts=facts)

    def look(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._left -= 1
        if self._left < 0:
            self.gave_up = self.gave_up or bool(self._fresh)
            self._fresh.clear()
            self._notes.changed()
        if self._away or func in SAME_VALUES:
            return
        kind = ""
        for where, tensor in tensors_in(args, kwargs):
            for part, fresh in self._parts(tensor):
                kind = kind or kind_of(getattr(func, "__name__", ""), args)
                if kind == "reads" and not where.startswith("out"):
                    self._read(func, tensor, part, fresh)
                elif fresh.then is not None and func is torch.Tensor.copy_ and where == "0":
                    continue  # whether these are the values that were meant is seen afterwards
                elif kind == "fills" and where == "0" and tensor is part:
                    self._filled(func, args, part, fresh)
                elif kind not in ("views", "copies") and not _is_source(kind, where):
                    self._forget(fresh)

    def at_end(self) -> None:
        """Say what nobody wrote into and nobody read."""
        for fresh in list(self._fresh.values()):
            if fresh.entry.name and not fresh.written and fresh.entry() is not None:
                if fresh.then is not None:
                    fresh.then(fresh.entry, AT_THE_END)
                else:
                    self._notes.note_at(0, Did.UNWRITTEN, fresh.entry, op=AT_THE_END)

    def _parts(self, tensor: Any) -> list[tuple[torch.Tensor, Fresh]]:
        found = self._notes.storages.parts(tensor)
        return [(part, self._fresh[e.number]) for part, e in found if e.number in self._fresh]

    def _read(self, func: Any, tensor: Any, part: torch.Tensor, fresh: Fresh) -> None:
        entry = fresh.entry
        if fresh.version is not None and (version_of(part) or 0) > fresh.version:
            self._forget(fresh)  # somebody wrote where no call is seen
        elif not fresh.written:
            self.read(entry, func)
        elif tensor is part and fresh.written < (wanted := _dense(part)):
            self._forget(fresh)
            facts = {"written": fresh.written, "read": wanted}
            self._notes.note(Did.UNWRITTEN, entry, op=func, facts=facts)

    def _filled(self, func: Any, args: Any, part: torch.Tensor, fresh: Fresh) -> None:
        if func.__name__ == "__setitem__":
            with DisableTorchFunction(), torch.no_grad():
                part = part[args[1]] if is_basic(args[1]) else part
        if fresh.fill(part):
            self._forget(fresh)
        elif fresh.version is not None:
            fresh.version += 1


def _is_source(kind: str, where: str) -> bool:
    """Of what is written into another."""
    return kind == "fills" and where in ("1", "2", "src", "other", "value")


def _dense(part: torch.Tensor) -> int:
    """Bytes, none of them twice; 0 if that is not clear."""
    with DisableTorchFunction():
        return part.numel() * part.element_size() if part.is_contiguous() else 0


def version_of(tensor: Any) -> int | None:
    """How often it was written in place, by torch's own count."""
    with DisableTorchFunction(), suppress(RuntimeError):  # inference tensors have no count
        return int(tensor._version)
    return None


def _others_may_write() -> bool:
    """Collectives write into tensors without a call that could be seen."""
    distributed = torch.distributed
    return bool(distributed.is_available() and distributed.is_initialized())
