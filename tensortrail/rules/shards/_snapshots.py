"""What keeps the tensors of a state dict themselves although it looks like a copy of them."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tensortrail.rules import Module
from tensortrail.rules.shards._replaced import state_dict_of
from tensortrail.rules.shared.objects import called, receiver

_SHALLOW = ("dict", "OrderedDict", "collections.OrderedDict", "copy.copy")
_SAME_MEMORY = ("detach", "cpu", "to", "contiguous")


@dataclass(frozen=True)
class Snapshot:
    """A state dict that is kept."""

    owner: str
    """The name of `m` of `m.state_dict()`."""
    by_device: bool = False
    """`.cpu()` copies what lies on a GPU, and gives back what lies on the CPU."""

    @property
    def when(self) -> str:
        """The condition under which its tensors are those of the model, for a message."""
        return " while the model is on the CPU, where `.cpu()` copies nothing" * self.by_device


def snapshot_of(module: Module, node: ast.expr) -> Snapshot | None:
    """`m.state_dict()` as it is, in another dict, or its values by `.cpu()`."""
    owner = state_dict_of(module, node)
    if owner:
        return Snapshot(owner)
    if isinstance(node, ast.DictComp):
        return _of_each(module, node)
    if isinstance(node, ast.Call):
        return _of_copy(module, node)
    return None


def is_shallow(module: Module, value: ast.expr, name: str) -> bool:
    """`OrderedDict(name)`: another dict of the same tensors."""
    if not isinstance(value, ast.Call) or len(value.args) != 1:
        return False
    return module.qualified(value.func) in _SHALLOW and module.text(value.args[0]) == name


def _of_copy(module: Module, call: ast.Call) -> Snapshot | None:
    """`dict(m.state_dict())`, `m.state_dict().copy()`: another dict of the same tensors."""
    inner = receiver(call) if called(call) == "copy" and not call.args else None
    if inner is None and module.qualified(call.func) in _SHALLOW and len(call.args) == 1:
        inner = call.args[0]
    return snapshot_of(module, inner) if inner is not None else None


def _of_each(module: Module, shown: ast.DictComp) -> Snapshot | None:
    """`{name: value.cpu() for name, value in m.state_dict().items()}`."""
    loop, items = shown.generators[0], shown.generators[0].iter
    if len(shown.generators) > 1 or not isinstance(items, ast.Call) or called(items) != "items":
        return None
    source, target = receiver(items), loop.target
    owner = state_dict_of(module, source) if source is not None else ""
    if not owner or not isinstance(target, ast.Tuple) or len(target.elts) != 2:
        return None
    steps = _steps(shown.value, target.elts[1])
    return None if steps is None else Snapshot(owner, any(e in ("cpu", "to") for e in steps))


def _steps(value: ast.expr, name: ast.expr) -> list[str] | None:
    """The methods of `v.detach().cpu()`; None if it gives another tensor for sure."""
    steps: list[str] = []
    while isinstance(value, (ast.Call, ast.Attribute)):
        if isinstance(value, ast.Attribute):
            if value.attr != "data":
                return None
            value = value.value
            continue
        inner = receiver(value)
        if inner is None or called(value) not in _SAME_MEMORY or not _goes_to_cpu(value):
            return None
        steps.append(called(value))
        value = inner
    same = isinstance(value, ast.Name) and isinstance(name, ast.Name) and value.id == name.id
    return steps if same else None


def _goes_to_cpu(call: ast.Call) -> bool:
    """A `to` that only moves, and to the CPU; other methods take nothing."""
    given = [*call.args, *(each.value for each in call.keywords)]
    if called(call) != "to":
        return not given
    return [getattr(each, "value", None) for each in given] == ["cpu"]
