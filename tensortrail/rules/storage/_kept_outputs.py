"""Outputs that hooks keep as they are, and what changes them in place right after."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from tensortrail.rules.shared.hooks import FORWARD, Hook, hooks
from tensortrail.rules.shared.objects import called, is_name, is_self, is_true, keyword, receiver
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.shared.values import VIEWS
from tensortrail.rules.view import Module

_IN_PLACE = ("relu_", "leaky_relu_", "elu_", "hardtanh_", "dropout_", "celu_", "selu_", "rrelu_")
_KEEPS = frozenset({"append", "add", "extend", "setdefault", "insert"})


class KeptOutput(NamedTuple):
    hook: Hook
    kept: ast.expr
    """Where the hook stores the output."""
    changed: ast.AST
    """What writes into it."""


def kept_and_changed(module: Module) -> Iterator[KeptOutput]:
    for hook in hooks(module, FORWARD):
        kept = _kept(module, hook)
        owner = receiver(hook.registered)
        changed = _changed_by(module, owner) if kept is not None and owner is not None else None
        if kept is not None and changed is not None:
            yield KeptOutput(hook, kept, changed)


def _kept(module: Module, hook: Hook) -> ast.expr | None:
    """`kept[name] = output`, `kept.append(output.detach())`: in the memory of the output."""
    for assign in module.nodes(ast.Assign, hook.function):
        target = assign.targets[0]
        if isinstance(target, (ast.Subscript, ast.Attribute)) and _shares(assign.value, hook.given):
            return assign.value
    body = [hook.function.body] if isinstance(hook.function, ast.Lambda) else []
    for call in (*body, *module.nodes(ast.Call, hook.function)):
        if isinstance(call, ast.Call) and called(call) in _KEEPS and receiver(call) is not None:
            found = next((each for each in call.args if _shares(each, hook.given)), None)
            if found is not None:
                return found
    return None


def _shares(value: ast.expr, given: tuple[str, ...]) -> bool:
    """It is the output, or a view of it."""
    while isinstance(value, ast.Call) and called(value) in VIEWS and receiver(value) is not None:
        value = receiver(value) or value
    if isinstance(value, ast.Attribute) and value.attr == "data":
        value = value.value
    return any(is_name(value, each) for each in given[-1:])


def _changed_by(module: Module, owner: ast.expr) -> ast.AST | None:
    """The next module of a `Sequential` that is written out, or the next statement of a `forward`
    of the file, if it writes into what the hooked one gave."""
    if isinstance(owner, ast.Subscript):
        return _next_in_sequence(module, owner)
    if isinstance(owner, ast.Attribute):
        return _next_in_forward(module, owner)
    return None


def _next_in_sequence(module: Module, owner: ast.Subscript) -> ast.AST | None:
    made = behind(module, owner.value)
    number = owner.slice.value if isinstance(owner.slice, ast.Constant) else None
    if not isinstance(made, ast.Call) or module.qualified(made.func) != "torch.nn.Sequential":
        return None
    if not isinstance(number, int) or not 0 <= number < len(made.args) - 1:
        return None
    after = made.args[number + 1]
    return after if _works_in_place(module, after) else None


def _works_in_place(module: Module, made: ast.expr) -> bool:
    """`nn.ReLU(inplace=True)`"""
    made = behind(module, made)
    if not isinstance(made, ast.Call) or not module.qualified(made.func).startswith("torch.nn."):
        return False
    first = made.args[:1] if called(made) in ("ReLU", "ReLU6", "SiLU") else []
    return is_true(keyword(made, "inplace")) or any(is_true(each) for each in first)


def _next_in_forward(module: Module, owner: ast.Attribute) -> ast.AST | None:
    """`F.relu_(x)` after `x = self.first(x)`, of the class that made the object."""
    made = behind(module, owner.value)
    name = made.func.id if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) else ""
    classes = [each for each in module.nodes(ast.ClassDef) if each.name == name]
    forward = next(
        (
            each
            for cls in classes[:1]
            for each in cls.body
            if isinstance(each, ast.FunctionDef) and each.name == "forward"
        ),
        None,
    )
    for statement, after in _pairs(forward):
        output = _output_of(statement, owner.attr)
        if output:
            return after if _writes_into(module, classes[0], after, output) else None
    return None


def _pairs(forward: ast.FunctionDef | None) -> Iterator[tuple[ast.stmt, ast.stmt]]:
    body = forward.body if forward is not None else []
    yield from pairwise(body)


def _output_of(statement: ast.stmt, layer: str) -> str:
    """`x` of `x = self.layer(x)`."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return ""
    func, target = statement.value.func, statement.targets[0]
    is_layer = isinstance(func, ast.Attribute) and is_self(func.value) and func.attr == layer
    return target.id if is_layer and isinstance(target, ast.Name) else ""


def _writes_into(module: Module, cls: ast.ClassDef, statement: ast.stmt, output: str) -> bool:
    if isinstance(statement, ast.AugAssign):
        return is_name(statement.target, output)
    for call in module.nodes(ast.Call, statement):
        func = call.func
        if called(call) in _IN_PLACE or is_true(keyword(call, "inplace")):
            owner = receiver(call)
            if any(is_name(each, output) for each in (*call.args[:1], *([owner] if owner else []))):
                return True
        if isinstance(func, ast.Attribute) and is_self(func.value) and call.args:
            stored = _attribute(module, cls, func.attr)
            if stored is not None and is_name(call.args[0], output):
                return _works_in_place(module, stored)
    return False


def _attribute(module: Module, cls: ast.ClassDef, name: str) -> ast.expr | None:
    found = [
        assign.value
        for assign in module.nodes(ast.Assign, cls)
        if module.text(assign.targets[0]) == f"self.{name}"
    ]
    return found[0] if len(found) == 1 else None
