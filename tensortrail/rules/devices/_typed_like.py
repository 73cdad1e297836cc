"""Tensors that take the dtype of another one, and not its device."""

from __future__ import annotations

import ast

from tensortrail.rules.devices._company import FOLLOWS, dtype_taken_of
from tensortrail.rules.places import FunctionPlaces, What, Where
from tensortrail.rules.shared.objects import is_name, is_self, root_of
from tensortrail.rules.view import FunctionNode, Module
from tensortrail.rules.words import Kind


def typed_like(module: Module, function: FunctionNode, made: ast.Call) -> ast.expr | None:
    """`x` of `torch.tensor([value], dtype=x.dtype)`, if `x` may lie on any device."""
    places = module.places(function)
    held = places.seen.get(made)
    place = held.only if held is not None else None
    if held is None or place is None or place.where is not Where.DEFAULT or held.may_be_scalar:
        return None
    like = dtype_taken_of(made)
    if like is None or is_self(root_of(like)):
        return None  # what a module makes like its own weight may become that weight
    usable = _may_be_anywhere(module, places, like)
    return like if usable and not _is_copied_into(module, function, made) else None


def _may_be_anywhere(module: Module, places: FunctionPlaces, tensor: ast.expr) -> bool:
    held = places.seen.get(tensor)
    known = held is not None and held.what is What.TENSOR
    if not known and module.kind_of(tensor) is not Kind.TENSOR:
        return False
    return held is None or all(each.where in FOLLOWS for each in held.places)


def _is_copied_into(module: Module, function: FunctionNode, made: ast.Call) -> bool:
    """`rows[:n].copy_(x)`, which takes values of any device."""
    stored = module.parent(made)
    target = stored.targets[0] if isinstance(stored, ast.Assign) else None
    if not isinstance(target, ast.Name):
        return False
    copies = module.calls("copy_", inside=function)
    return any(is_name(root_of(each.func), target.id) for each in copies)
