"""What keeps the tensors of a state dict themselves although it looks like a copy of them."""

from __future__ import annotations

import ast
from typing import NamedTuple

from tensortrail.rules import Module
from tensortrail.rules.shards._replaced import state_dict_of
from tensortrail.rules.shared.moves import moves_to_cpu
from tensortrail.rules.shared.objects import all_given, called, receiver
from tensortrail.rules.unchanging import unchanging

_SHALLOW = ("dict", "OrderedDict", "collections.OrderedDict", "copy.copy")
_SAME_MEMORY = ("detach", "cpu", "to", "contiguous")


@unchanging(frozen=True, slots=False)
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
    """`OrderedDict(name)`, `{k: v for k, v in name.items()}`: another dict of the same tensors."""
    if isinstance(value, ast.DictComp):
        listed = _listed(module, value)
        return listed is not None and module.text(listed.source) == name
    if not isinstance(value, ast.Call) or len(value.args) != 1:
        return False
    return module.qualified(value.func) in _SHALLOW and module.text(value.args[0]) == name


def _of_copy(module: Module, call: ast.Call) -> Snapshot | None:
    """`dict(m.state_dict())`, `m.state_dict().copy()`: another dict of the same tensors."""
    inner = receiver(call) if called(call) == "copy" and not call.args else None
    if inner is None and module.qualified(call.func) in _SHALLOW and len(call.args) == 1:
        inner = call.args[0]
        inner = (
            receiver(inner) if isinstance(inner, ast.Call) and called(inner) == "items" else inner
        )
    if inner is None:
        return None
    owner = _named(module, inner)
    return Snapshot(owner) if owner else snapshot_of(module, inner)


def _of_each(module: Module, shown: ast.DictComp) -> Snapshot | None:
    """`{name: value.cpu() for name, value in m.state_dict().items()}`."""
    listed = _listed(module, shown)
    if listed is None:
        return None
    owner = state_dict_of(module, listed.source) or _named(module, listed.source)
    return Snapshot(owner, any(e in ("cpu", "to") for e in listed.steps)) if owner else None


def _named(module: Module, source: ast.expr) -> str:
    """The owner of the state dict that a name stands for, if no value in it is replaced."""
    made = module.value_of(source).origins if isinstance(source, ast.Name) else ()
    owner = state_dict_of(module, made[0]) if len(made) == 1 else ""
    if not owner or not isinstance(source, ast.Name):
        return ""
    uses = module.nodes(ast.Name, module.function_of(source))
    changed = any(each.id == source.id and _is_changed(module, each) for each in uses)
    return "" if changed else owner


def _is_changed(module: Module, use: ast.Name) -> bool:
    """`weights[key] = ...`, `weights.update(...)`."""
    up = module.parent(use)
    if isinstance(up, ast.Subscript):
        return not isinstance(up.ctx, ast.Load)
    return isinstance(up, ast.Attribute) and up.attr == "update"


class _Listed(NamedTuple):
    """A dict comprehension over the items of a dict, whose values are those of the dict."""

    source: ast.expr
    steps: list[str]
    """Methods that are called on each."""


def _listed(module: Module, shown: ast.DictComp) -> _Listed | None:
    loop, items = shown.generators[0], shown.generators[0].iter
    if len(shown.generators) > 1 or not isinstance(items, ast.Call) or called(items) != "items":
        return None
    source, target = receiver(items), loop.target
    if source is None or not isinstance(target, ast.Tuple) or len(target.elts) != 2:
        return None
    steps = _steps(module, shown.value, target.elts[1])
    return None if steps is None else _Listed(source, steps)


def _steps(module: Module, value: ast.expr, name: ast.expr) -> list[str] | None:
    """The methods of `v.detach().cpu()`; None if it gives another tensor for sure."""
    steps: list[str] = []
    while isinstance(value, (ast.Call, ast.Attribute)):
        if isinstance(value, ast.Attribute):
            if value.attr != "data":
                return None
            value = value.value
            continue
        inner = receiver(value)
        if (
            inner is None
            or called(value) not in _SAME_MEMORY
            or not _only_goes_to_cpu(module, value)
        ):
            return None
        steps.append(called(value))
        value = inner
    same = isinstance(value, ast.Name) and isinstance(name, ast.Name) and value.id == name.id
    return steps if same else None


def _only_goes_to_cpu(module: Module, call: ast.Call) -> bool:
    """A `to` that only moves, and to the CPU; other methods take nothing."""
    given = all_given(call)
    if called(call) != "to":
        return not given
    return len(given) == 1 and moves_to_cpu(module, call)
