"""Which bytes a tensor has: storages get numbers, kept as long as the storage lives.

Tensors themselves are never referred to, not even weakly: torch refuses to swap a tensor that
has weak references. A storage's Python object lives exactly as long as its bytes.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch._C import DisableTorchFunction, _is_torch_function_mode_enabled

from tensortrail.tracer.identity.inner_tensors import (
    PLAIN,
    computes,
    inner_tensors,
)
from tensortrail.tracer.patching.signals import let_through
from tensortrail.tracer.trail.layout import Row
from tensortrail.tracer.trail.writer import TrailWriter

MOST_DESCRIPTIONS = 10_000


class Described(NamedTuple):
    """What a trail says of a storage when it is first seen, next to its device."""

    nbytes: int
    dtype: str
    shape: tuple[int, ...]
    kind: str
    """The class of the wrapper tensor it is a part of, or ""."""


class Entry(weakref.ref):  # type: ignore[type-arg]
    """A live storage."""

    __slots__ = ("described", "description", "device", "key", "name", "number")
    key: int
    number: int
    device: str
    name: str
    described: Described
    description: Row
    """The same as the trail says it."""


Alike = tuple[str, Described, Row]
"""The device of storages, their description, and what their rows say."""
Pair = tuple[Entry, Entry, Row | None]


class Storages:
    def __init__(self, writer: TrailWriter, freed: Callable[[int], None]) -> None:
        self.writer = writer
        self.locate: Callable[[Any], str] | None = None
        """Which simulated device a storage lies on; "" for none."""
        self.devices: set[str] = set()
        """Every device seen so far."""
        self.dead: deque[Entry] = deque()
        """Storages that are gone since the last look. No code of ours runs when one dies: an
        exception that a signal handler raised in it would be lost."""
        self._died = self.dead.append
        self._live: dict[int, Entry] = {}
        self._alike: dict[tuple[Any, ...], Alike] = {}
        """Most storages are like others."""
        self._freed = freed
        self._device_names: dict[torch.device, str] = {}

    def __len__(self) -> int:
        self.bury()
        return len(self._live)

    def number(self, tensor: Any) -> int:
        """The number of the tensor's (first) storage; 0 if it has none that means anything."""
        entry = self.entry(tensor)
        return entry.number if entry else 0

    def entry(self, tensor: Any) -> Entry | None:
        if type(tensor) in PLAIN and not _is_torch_function_mode_enabled():
            return self.plain(tensor)  # nobody would see the questions
        with DisableTorchFunction():
            try:
                if type(tensor) in PLAIN:
                    return self.plain(tensor)
                for inner, outer in inner_tensors(tensor):
                    return self._entry(inner, outer)
            except Exception as error:
                let_through(error)
                return None  # sparse, functorch, half-built: nothing that could be followed
        return None

    def plain(self, tensor: torch.Tensor) -> Entry | None:
        """The entry of a plain tensor, asked where no function mode sees it."""
        try:
            storage = tensor.untyped_storage()
            if self.dead:
                self.bury()
            known = self._live.get(storage._cdata)
            return known or self._add(storage, tensor.dtype, tensor.shape, "")
        except Exception as error:
            let_through(error)
            return None

    def entries(self, tensor: Any) -> list[Entry]:
        """All inner storages of a wrapper; the one of a plain tensor."""
        if type(tensor) in PLAIN:
            entry = self.entry(tensor)
            return [] if entry is None else [entry]
        with DisableTorchFunction():
            try:
                return [self._entry(*pair) for pair in inner_tensors(tensor)]
            except Exception as error:
                let_through(error)
                return []

    def pair(self, source: Any, made: Any) -> Pair | None:
        """The storages of two plain tensors; None if one is not, or has none. Of a second one that
        is new the trail knows nothing yet: it has to be told what comes third."""
        if type(made) not in PLAIN or type(source) not in PLAIN:
            return None
        if _is_torch_function_mode_enabled():
            with DisableTorchFunction():
                return self.pair(source, made)
        try:
            storage = made.untyped_storage()
            if self.dead:
                self.bury()
            live = self._live
            old = live.get(source.untyped_storage()._cdata) or self.plain(source)
            new = live.get(storage._cdata)
            if old is None or new is not None:
                return (old, new, None) if old is not None and new is not None else None
            number = next(self.writer.storage_numbers)
            new = self._add(storage, made.dtype, made.shape, "", number)
            return old, new, new.description
        except Exception as error:
            let_through(error)
            return None

    def known(self, tensor: Any) -> Entry | None:
        """The entry of a tensor whose storage was met before."""
        with DisableTorchFunction():
            try:
                for inner, _ in inner_tensors(tensor):
                    return self.of_storage(inner.untyped_storage())
            except Exception as error:
                let_through(error)
                return None
        return None

    def all_known(self, tensors: Iterable[Any]) -> list[Entry]:
        """The entries of those whose storages were met before."""
        found: list[Entry] = []
        with DisableTorchFunction():
            for tensor in tensors:
                try:
                    inner = tensor if type(tensor) in PLAIN else next(inner_tensors(tensor))[0]
                    entry = self.of_storage(inner.untyped_storage())
                except Exception as error:
                    let_through(error)
                    continue
                if entry is not None:
                    found.append(entry)
        return found

    def parts(self, tensor: Any) -> list[tuple[Any, Entry]]:
        """The parts of a tensor whose storages were met before."""
        with DisableTorchFunction():
            try:
                found = [
                    (p, self.of_storage(p.untyped_storage())) for p, _ in inner_tensors(tensor)
                ]
            except Exception as error:
                let_through(error)
                return []
        return [(part, entry) for part, entry in found if entry is not None]

    def of_storage(self, storage: Any) -> Entry | None:
        if self.dead:
            self.bury()
        return self._live.get(storage._cdata)

    def add(self, storage: Any) -> Entry | None:
        """A storage without a tensor around it."""
        known = self.of_storage(storage)
        if known is not None:
            return known
        return self._add(storage, "uint8", (storage.nbytes(),), "")

    def device_name(self, device: torch.device) -> str:
        name = self._device_names.get(device)
        if name is None:
            name = self._device_names[device] = str(device)
        return name

    def name(self, entry: Entry, name: str, anyway: bool = False) -> None:
        before = entry.name
        if before == name:
            return
        longer = before.count(".") > name.count(".")
        if not anyway and longer and before.endswith(name.rpartition(".")[2]):
            return  # the path in the whole model says more than the one in a part of it
        entry.name = name
        self.writer.name(entry.number, name)

    def live(self) -> list[Entry]:
        self.bury()
        return list(self._live.values())

    def moved_to(self, writer: TrailWriter) -> None:
        """A forked child goes on with a trail of its own: say again what is alive."""
        self.writer = writer
        self._alike.clear()
        for entry in self.live():
            writer.again(entry.number, entry.device, *entry.described)
            if entry.name:
                writer.name(entry.number, entry.name)

    def forget(self) -> None:
        self._live.clear()

    def _entry(self, tensor: torch.Tensor, outer: str) -> Entry:
        storage = tensor.untyped_storage()
        if self.dead:
            self.bury()
        known = self._live.get(storage._cdata)
        if known is not None:
            return known
        shape = () if computes(tensor) else tensor.shape
        return self._add(storage, tensor.dtype, shape, outer)

    def _add(
        self, storage: Any, dtype: Any, shape: tuple[int, ...], outer: str, number: int = 0
    ) -> Entry:
        """Whoever gives it a number tells the trail of it."""
        device = (self.locate and self.locate(storage)) or storage.device
        said = device, storage.nbytes(), dtype, shape, outer
        alike = self._alike.get(said) or self._first_of(said)
        entry = Entry(storage, self._died)
        entry.device, entry.described, entry.description = alike
        entry.name = ""
        entry.number = number or self.writer.storage_of(alike[2])
        entry.key = key = storage._cdata
        self._live[key] = entry
        return entry

    def _first_of(self, said: tuple[Any, ...]) -> Alike:
        device, nbytes, dtype, shape, outer = said
        device = str(device)
        described = Described(nbytes, str(dtype).removeprefix("torch."), tuple(shape), outer)
        alike = device, described, self.writer.description(device, *described)
        self.devices.add(device)
        if len(self._alike) < MOST_DESCRIPTIONS:
            self._alike[said] = alike
        return alike

    def bury(self) -> None:
        dead, live, freed = self.dead, self._live, self._freed
        while dead:
            try:
                entry = dead.popleft()
            except IndexError:  # another thread was faster
                return
            if live.get(entry.key) is entry:
                del live[entry.key]
            freed(entry.number)
