"""Copies of models that are never moved, while the models are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.devices.shared.modules.combined_models import Combined
from tensortrail.rules.devices.shared.modules.keepers_of_copies import keepers, users_of_copies
from tensortrail.rules.devices.shared.modules.moves_of_models import (
    bare,
    may_be_moved,
    moves_of,
    only_assignment,
    scope_of,
)
from tensortrail.rules.shared.given_devices import says_device
from tensortrail.rules.shared.moves import MAY_PLACE, TO_DEVICE
from tensortrail.rules.shared.objects import called, calls_in, given, receiver
from tensortrail.rules.shared.parts_moved import is_to_a_device
from tensortrail.rules.view import Module
from tensortrail.rules.words import Kind

_COPIES = ("deepcopy",)


class Left(NamedTuple):
    made: ast.stmt
    name: str
    model: str
    move: ast.Call
    used: ast.Call


def left_beside(module: Module, combined: Combined) -> Left | None:
    for name, model in (combined.models, combined.models[::-1]):
        scope = scope_of(module, combined.at, name)
        made = only_assignment(module, scope, name) if scope is not None else None
        if scope is None or made is None or may_be_moved(module, scope, name, combined.at):
            continue
        move = _move_of_the_other(module, scope, made, model)
        if move is not None:
            return Left(made, name, model, move, combined.at)
    return None


def kept_beside(module: Module) -> Iterator[Left]:
    """`average = Average(model)`, whose class has copied the parameters before they are moved."""
    for cls, users in keepers(module):
        for call in module.calls(cls.name):
            yield from _kept_by(module, call, users)
    if any(module.calls("parameters", "named_parameters")):  # it trains
        for made in module.nodes(ast.Assign):
            if isinstance(made.value, ast.Call):
                yield from _kept_elsewhere(module, made, made.value)


def _kept_elsewhere(module: Module, made: ast.Assign, call: ast.Call) -> Iterator[Left]:
    """The same of a class of another file."""
    dotted = module.qualified(call.func)
    models = map(module.text, map(root_or_owner, given(call)))
    if _is_class_elsewhere(dotted) and any(_moved_only_after(module, made, x) for x in models):
        yield from _kept_by(module, call, module.about(dotted, users_of_copies) or frozenset())


def _is_class_elsewhere(dotted: str) -> bool:
    """By the way it is written, a class that the file imports from the project."""
    first, last = dotted.partition(".")[0], dotted.rpartition(".")[2]
    return last[:1].isupper() and "." in dotted and first not in ("torch", "self", "cls")


def _kept_by(module: Module, call: ast.Call, users: frozenset[str]) -> Iterator[Left]:
    made = module.parent(call)
    if not isinstance(made, ast.Assign) or made.value is not call or not users:
        return
    name = module.text(made.targets[0])
    for model in map(module.text, map(root_or_owner, given(call))):
        move = _moved_only_after(module, made, model)
        scope = scope_of(module, made, name)
        used = _used(module, scope, name, users) if scope is not None else None
        if move is not None and used is not None:
            yield Left(made, name, model, move, used)


def root_or_owner(node: ast.expr) -> ast.expr:
    """`model` of `model.parameters()`; a name or attribute itself."""
    owner = receiver(node) if isinstance(node, ast.Call) else None
    is_of_model = isinstance(node, ast.Call) and called(node) in ("parameters", "named_parameters")
    return owner if owner is not None and is_of_model else node


def _used(module: Module, scope: ast.AST, name: str, methods: frozenset[str]) -> ast.Call | None:
    calls = (each for each in module.calls(*methods, inside=scope) if receiver(each) is not None)
    return next((each for each in calls if _owner_text(module, each) == name), None)


def _owner_text(module: Module, call: ast.Call) -> str:
    owner = receiver(call)
    return module.text(owner) if owner is not None else ""


def _move_of_the_other(
    module: Module, scope: ast.AST, made: ast.Assign, model: str
) -> ast.Call | None:
    if _is_placed(module, made.value):
        return None
    copies = [each for each in calls_in(module, made.value) if called(each) in _COPIES]
    if copies:
        of_model = any(module.text(arg) == model for each in copies for arg in each.args)
        return _moved_only_after(module, made, model) if of_model else None
    other = only_assignment(module, scope, model)
    if other is None or not isinstance(made.value, ast.Call):
        return None
    inner = bare(other.value)
    same = isinstance(inner, ast.Call) and module.text(inner.func) == module.text(made.value.func)
    if not same or module.kind_of(made.value) is not Kind.MODULE:
        return None
    at_once = [each for each in calls_in(module, other.value) if called(each) in TO_DEVICE]
    moves = [*at_once, *moves_of(module, module.calls(*TO_DEVICE, inside=scope), model)]
    return next((each for each in moves if is_to_a_device(module, each)), None)


def _moved_only_after(module: Module, made: ast.Assign, model: str) -> ast.Call | None:
    for assign in module.earlier(made, ast.Assign):
        if model in map(module.text, assign.targets) and _is_placed(module, assign.value):
            return None
    before = (each for each in module.earlier(made, ast.Call) if called(each) in MAY_PLACE)
    if any(_is_of(module, each, model) for each in before):
        return None
    later = (each for each in module.later(made, ast.Call) if called(each) in TO_DEVICE)
    return next(
        (each for each in moves_of(module, later, model) if is_to_a_device(module, each)), None
    )


def _is_placed(module: Module, value: ast.expr) -> bool:
    """It is moved, or told where to be."""
    moved = any(called(each) in MAY_PLACE for each in calls_in(module, value))
    named = any(word in module.text(value) for word in ("device", "cuda"))
    return moved or named or says_device(module, value)


def _is_of(module: Module, call: ast.Call, model: str) -> bool:
    """It moves the model, or is given it."""
    return _owner_text(module, call) == model or model in map(module.text, given(call))
