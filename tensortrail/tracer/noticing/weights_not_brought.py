"""A hook should have brought a weight to where the other operands are: why it did not.

Modules are merely noted until a weight is found in the wrong place."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from typing import Any

from torch.nn import Module

from tensortrail.tracer.identity.storages import Entry
from tensortrail.tracer.noticing.offload_tests import OffloadTests
from tensortrail.tracer.noticing.onload_hooks import (
    Bringer,
    Known,
    OnloadHooks,
    device_name,
    weights_of,
)

MOST_LOOKS = 200
MOST_PARTS = 50
DEEPEST_FORWARD = 12


class NotBrought:
    """Asked with operands that lie on several devices."""

    def __init__(self, hooks: OnloadHooks) -> None:
        self._hooks, self._models = hooks, hooks.models
        self._misled = OffloadTests()
        self._looks = 0

    def explain(self, operands: Sequence[dict[str, Any]], entries: Sequence[Entry | None]) -> None:
        """Operands that a hook should have brought to the others' device get its story."""
        if self._hooks.known:
            for told, entry in zip(operands, entries, strict=True):
                if (why := self._why(entry)) is not None:
                    told["hook"] = why

    def _why(self, entry: Entry | None) -> dict[str, Any] | None:
        """Why this weight was not brought; None if no hook should have."""
        if entry is None or not self._hooks.known or self._looks >= MOST_LOOKS:
            return None
        self._looks += 1
        # The deepest first: the hook of a part says more than one of the whole.
        for known in sorted(self._hooks.known.values(), key=lambda each: -_depth(each.path)):
            module = known.module()
            if module is not None and (found := self._should_bring(known, module, entry)):
                return self._told(known, module, *found)
        return self._added(entry)

    def _added(self, entry: Entry) -> dict[str, Any] | None:
        """A weight that came into its model after the hooks, so that none brings it."""
        self._models.look_here()
        for name, model in self._models.all():
            path, module = _owner(model, entry, self._hooks)
            hooked = next(self._hooks.hooks(model), None) if module is not None else None
            if module is None or hooked is None or self._hooks.of(module):
                continue
            _, there, bringer = hooked
            late = entry.number > self._hooks.since(there)
            if late and not bringer.stays and bringer.device != entry.device:
                parameter = _below(name, path)
                facts = {"hook": bringer.hook, "module": name, "shown": name, "to": bringer.device}
                return facts | {"why": "added", "parameter": parameter, "kept_in": ""}
        return None

    def _should_bring(
        self, known: Known, module: Module, entry: Entry
    ) -> tuple[str, Bringer] | None:
        for bringer in known.bringers if known.removed else self._hooks.of(module):
            if bringer.device == entry.device:
                continue
            for key, tensor in weights_of(module, bringer.whole):
                if self._hooks.storages.known(tensor) is entry:
                    return key, bringer
        return None

    def _told(self, known: Known, module: Module, key: str, bringer: Bringer) -> dict[str, Any]:
        self._models.look_here()
        root = known.root() if known.root is not None else self._models.around(module)
        model = self._models.of(root) if root is not None else ""
        leader = bringer.leader if bringer.leader is not None else module
        facts: dict[str, Any] = {
            "hook": bringer.hook,
            "module": known.path or self._models.of(module),
            "shown": _below(model, known.path) or self._models.of(module),
            "called": _below(model, self._hooks.path(leader)) or self._models.of(leader),
            "parameter": _below(model if known.path else self._models.of(module), known.path, key),
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


def _owner(model: Module, entry: Entry, hooks: OnloadHooks) -> tuple[str, Module | None]:
    """The module that has the weight itself, and the path of that below the model."""
    for path, module in model.named_modules():
        for key, tensor in weights_of(module, whole=False):
            if hooks.storages.known(tensor) is entry:
                return f"{path}.{key}".lstrip("."), module
    return "", None


def _below(model: str, *parts: str) -> str:
    """The path as people call it; empty for the model itself."""
    path = ".".join(filter(None, parts))
    return ".".join(filter(None, (model, path))) if path else ""


def _depth(path: str) -> int:
    return path.count(".") + 1 if path else 0


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
