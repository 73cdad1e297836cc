"""Hooks bring weights when a module is called; this finds why one of them did not.

Modules are merely noted until a weight is found in the wrong place."""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch.nn import Module

from tensortrail.tracer.identity.model_names import ModelNames
from tensortrail.tracer.identity.module_tensors import owned
from tensortrail.tracer.identity.sites import Place
from tensortrail.tracer.identity.storages import Entry, Storages
from tensortrail.tracer.noticing.offload_tests import OffloadTests

MOST_LOOKS = 200
MOST_PARTS = 50
DEEPEST_FORWARD = 12


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
        self._known: dict[int, Known] = {}
        self._here = Here()
        self._misled = OffloadTests()
        self._looks = 0

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
        self._known[id(module)] = Known(weakref.ref(module), path, self._here.root)

    def met(self, module: Module, path: Callable[[], str]) -> None:
        """The module's hook acts; it may have had it before anything was recorded."""
        if self._put_on(module) is None:
            self.put(module, path())

    def taken(self, module: Module, where: Place | None) -> None:
        """To be called before the hooks go."""
        if (known := self._put_on(module)) is not None and (there := self.of(module)):
            known.bringers = tuple(Bringer(each.hook, each.device, each.whole) for each in there)
            known.removed = where

    def path(self, module: Module) -> str:
        known = self._put_on(module)
        return known.path if known else ""

    def shown(self, module: Module) -> str:
        return self.path(module) or self.models.of(module)

    def hooks(self, root: Module) -> Iterator[tuple[str, Module, Bringer]]:
        """The hooks on the module and below it, with the paths of their modules."""
        for module in root.modules() if self._known else ():
            if (known := self._put_on(module)) is not None and known.removed is None:
                for bringer in self.of(module):
                    yield known.path, module, bringer

    def away(self, root: Module) -> list[tuple[str, str, str]]:
        """Parts whose hooks count on weights that somebody moved: path, device, device now."""
        found = []
        for path, module, bringer in self.hooks(root):
            if not bringer.stays:
                continue
            for _, tensor in _weights(module, whole=False):
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

    def explain(self, operands: Sequence[dict[str, Any]], entries: Sequence[Entry | None]) -> None:
        """Operands that a hook should have brought to the others' device get its story."""
        if self._known:
            for told, entry in zip(operands, entries, strict=True):
                if (why := self.why(entry)) is not None:
                    told["hook"] = why

    def why(self, entry: Entry | None) -> dict[str, Any] | None:
        """Why this weight was not brought; None if no hook should have."""
        if entry is None or not self._known or self._looks >= MOST_LOOKS:
            return None
        self._looks += 1
        # The deepest first: the hook of a part says more than one of the whole.
        for known in sorted(self._known.values(), key=lambda each: -_depth(each.path)):
            module = known.module()
            if module is not None and (found := self._should_bring(known, module, entry)):
                return self._told(known, module, *found)
        return None

    def _should_bring(
        self, known: Known, module: Module, entry: Entry
    ) -> tuple[str, Bringer] | None:
        for bringer in known.bringers if known.removed else self.of(module):
            if bringer.device == entry.device:
                continue
            for key, tensor in _weights(module, bringer.whole):
                if self.storages.known(tensor) is entry:
                    return key, bringer
        return None

    def _told(self, known: Known, module: Module, key: str, bringer: Bringer) -> dict[str, Any]:
        self.models.look_here()
        root = known.root() if known.root is not None else self.models.around(module)
        model = self.models.of(root) if root is not None else ""
        leader = bringer.leader if bringer.leader is not None else module
        facts: dict[str, Any] = {
            "hook": bringer.hook,
            "module": known.path or self.models.of(module),
            "shown": _below(model, known.path) or self.models.of(module),
            "called": _below(model, self.path(leader)) or self.models.of(leader),
            "parameter": _below(model if known.path else self.models.of(module), known.path, key),
            "to": bringer.device,
            "kept_in": bringer.kept_in(key) or "",
        }
        if known.removed is not None:
            return facts | {"why": "removed", "at": list(known.removed)}
        if forward := _put_in_place_of_the_hook(leader):
            return facts | {"why": "replaced", "by": forward}
        if bringer.stays:
            return facts | {"why": "moved"}
        if guard := self._guard(known):
            facts["guard"] = guard
        return facts | {"why": "bypassed"}

    def _guard(self, known: Known) -> dict[str, Any] | None:
        """A test that took the model for one that is not offloaded."""
        root = known.root() if known.root is not None else None
        device_map = getattr(root, "hf_device_map", None)
        if root is None or not isinstance(device_map, dict):
            return None
        places = {device_name(place) for place in device_map.values()}
        guard = self._misled.by(sys._getframe(1), places) if "disk" in places else None
        if guard is not None:
            guard["model"] = type(root).__name__
            guard["parts"] = [name for name, _ in root.named_children()][:MOST_PARTS]
        return guard

    def of(self, module: Module) -> tuple[Bringer, ...]:
        """What the hooks that are on it now bring."""
        return tuple(bringer for asks in self._asks for bringer in asks(module))

    def _put_on(self, module: Module) -> Known | None:
        known = self._known.get(id(module))
        return known if known is not None and known.module() is module else None


WITHOUT_NUMBER = ("cpu", "meta", "disk", "None")


def device_name(device: Any) -> str:
    """As torch says it. Libraries also call a GPU by its number, and know "disk"."""
    text = str(device)
    if text.isdigit():
        return f"cuda:{text}"
    return text if ":" in text or text in WITHOUT_NUMBER else f"{text}:0"


def _below(model: str, *parts: str) -> str:
    """The path as people call it; empty for the model itself."""
    path = ".".join(filter(None, parts))
    return ".".join(filter(None, (model, path))) if path else ""


def _depth(path: str) -> int:
    return path.count(".") + 1 if path else 0


def _weights(module: Module, whole: bool) -> Iterator[tuple[str, Any]]:
    if whole:
        yield from owned(module)
        return
    for tensors in (module._parameters, module._buffers):
        for key, tensor in tensors.items():
            if tensor is not None:
                yield key, tensor


def _put_in_place_of_the_hook(module: Module) -> str:
    """What was made its forward after the hook had been; "" if the hook is still called."""
    forward = vars(module).get("forward", type(module).forward)
    return "" if _calls_a_hook(forward, 0) else str(getattr(forward, "__qualname__", forward))[:100]


def _calls_a_hook(function: Any, depth: int) -> bool:
    if depth > DEEPEST_FORWARD or function is None:
        return False
    if isinstance(function, functools.partial):
        inner = function.func
        if getattr(inner, "__module__", "").partition(".")[0] in ("accelerate", "diffusers"):
            return True
        return _calls_a_hook(inner, depth + 1)
    below = [getattr(function, "__wrapped__", None), getattr(function, "__func__", None)]
    below += [_content(cell) for cell in getattr(function, "__closure__", None) or ()]
    return any(_calls_a_hook(each, depth + 1) for each in below if callable(each))


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None
