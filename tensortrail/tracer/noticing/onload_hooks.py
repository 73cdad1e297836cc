"""Hooks bring weights when a module is called: which modules have some, and what these bring."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch.nn import Module

from tensortrail.tracer.identity.model_names import ModelNames
from tensortrail.tracer.identity.module_tensors import owned
from tensortrail.tracer.identity.sites import Place
from tensortrail.tracer.identity.storages import Storages


class Bringer(NamedTuple):
    """What one hook does for the weights of the module it is on."""

    hook: str
    """Its class, after its library: `accelerate.AlignDevicesHook`."""
    device: str
    """Where it brings them."""
    whole: bool
    """Also those of the modules below."""
    kept_in: Callable[[str], str | None] = lambda key: ""
    """The file it reads a weight from, "" if it is in memory, None if it knows no such weight."""
    leader: Module | None = None
    """Whose call brings them, if it is another module."""
    stays: bool = False
    """It only sends inputs there: the weights have to be there already."""


Asks = Callable[[Module], Iterator[Bringer]]


@dataclass
class Known:
    """A module that has hooks, or had."""

    module: weakref.ref[Module]
    path: str
    root: weakref.ref[Module] | None = None
    """The model it is a part of."""
    bringers: tuple[Bringer, ...] = ()
    """As they were when they were taken off, without what they kept alive."""
    removed: Place | None = None
    since: int = 0
    """The storage number that was next when the hook was put on."""


class Here(threading.local):
    """What a thread is spreading over devices just now."""

    def __init__(self) -> None:
        self.paths: dict[int, str] = {}
        self.root: weakref.ref[Module] | None = None
        self.depth = 0


class OnloadHooks:
    def __init__(self, storages: Storages, models: ModelNames) -> None:
        self.storages = storages
        self.models = models
        self._asks: list[Asks] = []
        self.known: dict[int, Known] = {}
        self._here = Here()

    def learn(self, asks: Asks) -> None:
        """How a library says which hooks a module of it has."""
        self._asks.append(asks)

    @contextmanager
    def within(self, model: Module) -> Iterator[None]:
        """Modules that get hooks meanwhile are parts of this model."""
        here = self._here
        before = here.paths, here.root
        here.paths = {id(each): path for path, each in model.named_modules()}
        here.root = weakref.ref(model)
        try:
            yield
        finally:
            here.paths, here.root = before

    @contextmanager
    def spreading(self) -> Iterator[bool]:
        """Whether it is the outermost of the functions that do it: that one knows what was asked
        for, and is done when all are."""
        self._here.depth += 1
        try:
            yield self._here.depth == 1
        finally:
            self._here.depth -= 1

    def put(self, module: Module, path: str = "") -> None:
        """The module got a hook. The path is that in the model, "" for the model itself."""
        path = path or self._here.paths.get(id(module), "") or self.path(module)
        since = next(self.storages.writer.storage_numbers)
        self.known[id(module)] = Known(weakref.ref(module), path, self._here.root, since=since)

    def met(self, module: Module, path: Callable[[], str]) -> None:
        """The module's hook acts; it may have had it before anything was recorded."""
        if self._put_on(module) is None:
            self.put(module, path())

    def taken(self, module: Module, where: Place | None) -> None:
        """To be called before the hooks go."""
        if (known := self._put_on(module)) is not None and (there := self.of(module)):
            known.bringers = tuple(Bringer(each.hook, each.device, each.whole) for each in there)
            known.removed = where

    def since(self, module: Module) -> int:
        known = self._put_on(module)
        return known.since if known else 0

    def path(self, module: Module) -> str:
        known = self._put_on(module)
        return known.path if known else ""

    def shown(self, module: Module) -> str:
        return self.path(module) or self.models.of(module)

    def hooks(self, root: Module) -> Iterator[tuple[str, Module, Bringer]]:
        """The hooks on the module and below it, with the paths of their modules."""
        for module in root.modules() if self.known else ():
            if (known := self._put_on(module)) is not None and known.removed is None:
                for bringer in self.of(module):
                    yield known.path, module, bringer

    def away(self, root: Module) -> list[tuple[str, str, str]]:
        """Parts whose hooks count on weights that somebody moved: path, device, device now."""
        found = []
        for path, module, bringer in self.hooks(root):
            if not bringer.stays:
                continue
            for _, tensor in weights_of(module, whole=False):
                entry = self.storages.known(tensor)
                if entry is not None and entry.device not in (bringer.device, "meta"):
                    found.append((path or self.models.of(module), bringer.device, entry.device))
                    break
        return found

    def lies_on(self, module: Module, device: str) -> bool:
        first = next((self.storages.known(tensor) for _, tensor in owned(module)), None)
        return first is not None and first.device == device

    def number_of(self, tensor: Any) -> int:
        """The number of the tensor's storage in the trail, 0 if it is not known there."""
        entry = self.storages.known(tensor)
        return entry.number if entry is not None else 0

    def of(self, module: Module) -> tuple[Bringer, ...]:
        """What the hooks that are on it now bring."""
        return tuple(bringer for asks in self._asks for bringer in asks(module))

    def _put_on(self, module: Module) -> Known | None:
        known = self.known.get(id(module))
        return known if known is not None and known.module() is module else None


WITHOUT_NUMBER = ("cpu", "meta", "disk", "None")


def device_name(device: Any) -> str:
    """As torch says it. Libraries also call a GPU by its number, and know "disk"."""
    text = str(device)
    if text.isdigit():
        return f"cuda:{text}"
    return text if ":" in text or text in WITHOUT_NUMBER else f"{text}:0"


def weights_of(module: Module, whole: bool) -> Iterator[tuple[str, Any]]:
    if whole:
        yield from owned(module)
        return
    for tensors in (module._parameters, module._buffers):
        for key, tensor in tensors.items():
            if tensor is not None:
                yield key, tensor
