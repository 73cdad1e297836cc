"""Tensors that take the dtype of another one, and not its device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.devices.shared.meetings.going_along import FOLLOWS
from tensortrail.rules.devices.shared.meetings.sized_like import dtype_taken_of
from tensortrail.rules.devices.shared.written_for.device_aware import sets_up
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
    if like is None or (is_self(root_of(like)) and may_become_its_own(module, function, made)):
        return None
    usable = _may_be_anywhere(module, function, places, like)
    return like if usable and not _is_copied_into(module, function, made) else None


def _may_be_anywhere(
    module: Module, function: FunctionNode, places: FunctionPlaces, tensor: ast.expr
) -> bool:
    held = places.seen.get(tensor)
    known = held is not None and held.what is What.TENSOR
    if not known and module.kind_of(tensor) is not Kind.TENSOR:
        nothing_said = held is None or held.what is What.UNKNOWN
        return nothing_said and _is_measured(module, function, tensor)
    return held is None or all(
        each.where in FOLLOWS
        or (each.where is Where.LOCAL and _has_a_gradient(module, function, each.subject))
        for each in held.places
    )


def _has_a_gradient(module: Module, function: FunctionNode, name: str) -> bool:
    """`p` of `p.grad`: a weight, which lies where its model does."""
    return any(module.text(each.value) == name for each in module.members("grad", function))


def _is_measured(module: Module, function: FunctionNode, tensor: ast.expr) -> bool:
    """A variable with `x.dtype`, which torch takes, and with `x.shape`: a model has no shape."""
    measures = (*module.members("shape", function), *module.members("ndim", function))
    return isinstance(tensor, ast.Name) and any(
        isinstance(each.value, ast.Name) and each.value.id == tensor.id for each in measures
    )


def _is_copied_into(module: Module, function: FunctionNode, made: ast.Call) -> bool:
    """`rows[:n].copy_(x)`, which takes values of any device."""
    stored = module.parent(made)
    target = stored.targets[0] if isinstance(stored, ast.Assign) else None
    if not isinstance(target, ast.Name):
        return False
    copies = module.calls("copy_", inside=function)
    return any(is_name(root_of(each.func), target.id) for each in copies)


def may_become_its_own(module: Module, function: FunctionNode, made: ast.Call) -> bool:
    """What an object makes like its own weight may become that weight: while it is set up, by
    `self.weight = ...` or `layer.weight.data = ...`, or where it is given back."""
    statement = module.statement_of(made)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if sets_up(function) or not all(isinstance(each, ast.Name) for each in targets):
        return True
    names = {each.id for each in targets if isinstance(each, ast.Name)}
    given_back = isinstance(statement, ast.Return) and statement.value is made
    return given_back or any(
        isinstance(each, ast.Name) and each.id in names
        for kept in _given_away(module, function)
        for each in ast.walk(kept)
    )


def _given_away(module: Module, function: FunctionNode) -> Iterator[ast.expr]:
    """Names that it returns, what it keeps in attributes, and what becomes a parameter."""
    for answer in module.nodes(ast.Return, function):
        members = answer.value.elts if isinstance(answer.value, ast.Tuple) else [answer.value]
        yield from (each for each in members if isinstance(each, ast.Name))
    for statement in module.nodes(ast.Assign, function):
        if any(isinstance(each, ast.Attribute) for each in statement.targets):
            yield statement.value
    yield from module.calls("Parameter", "register_buffer", inside=function)
