"""Models that nobody moves, made beside one that is moved, and called with what was moved."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.devices.shared.modules.moves_of_models import (
    bare,
    may_be_moved,
    only_assignment,
    scope_of,
)
from tensortrail.rules.devices.shared.written_for.told import told_device
from tensortrail.rules.shared.asked_as_modules import asked_as_modules
from tensortrail.rules.shared.given_devices import says_device
from tensortrail.rules.shared.moves import TO_DEVICE
from tensortrail.rules.shared.objects import called, calls_in, given, receiver
from tensortrail.rules.shared.parts_moved import is_to_a_device
from tensortrail.rules.view import Module
from tensortrail.rules.words import Kind


class Unmoved(NamedTuple):
    made: ast.Call
    name: str
    move: ast.Call
    """The move of the other model."""
    other: str
    use: ast.Call
    device: ast.expr
    """Where an argument of the use lies."""


def called_unmoved(module: Module) -> Iterator[Unmoved]:
    for assign, name, move, other in _beside_moved(module):
        scope = scope_of(module, assign, name)
        made = bare(assign.value)
        if scope is None or not isinstance(made, ast.Call):
            continue
        if only_assignment(module, scope, name) is not assign or not _is_model(module, scope, name):
            continue
        for use in module.calls(name.rpartition(".")[2], inside=scope):
            device = _told(module, use) if module.text(use.func) == name else None
            if device is not None and not may_be_moved(module, scope, name, use):
                yield Unmoved(made, name, move, other, use, device)
                break


def _beside_moved(module: Module) -> Iterator[tuple[ast.Assign, str, ast.Call, str]]:
    """What the function makes that moves another model: the assignment, and the move."""
    seen: set[ast.AST] = set()
    for move in module.calls(*TO_DEVICE):
        function = module.function_of(move) or module.top
        if function in seen or not is_to_a_device(module, move):
            continue
        other = _moved_model(module, move)
        if not other:
            continue
        seen.add(function)
        named = module.once(_called_names, module.top)
        for assign in module.nodes(ast.Assign, function):
            target = module.text(assign.targets[0])
            if target in named and target != other and _is_made_unmoved(module, assign):
                yield assign, target, move, other


def _called_names(module: Module, _: ast.AST) -> frozenset[str]:
    """Variables and attributes that the file calls."""
    funcs = (each.func for each in module.nodes(ast.Call))
    return frozenset(
        module.text(each)
        for each in funcs
        if isinstance(each, ast.Name)
        or (isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name))
    )


def _moved_model(module: Module, move: ast.Call) -> str:
    """`self.policy` of `self.policy = Net().to(device)` or of `self.policy.to(device)`, if it is
    called somewhere."""
    owner = receiver(move)
    statement = module.statement_of(move)
    if (
        owner is not None
        and isinstance(bare(owner), ast.Call)
        and isinstance(statement, ast.Assign)
    ):
        owner = statement.targets[0] if statement.value is move else None
    if not isinstance(owner, (ast.Name, ast.Attribute)):
        return ""
    name = module.text(owner)
    if name not in module.once(_called_names, module.top):
        return ""
    scope = scope_of(module, move, name)
    return name if scope is not None and _is_model(module, scope, name) else ""


def _is_made_unmoved(module: Module, assign: ast.Assign) -> bool:
    """`net = Net(8)`, and no device is said."""
    value = assign.value
    made = bare(value)
    if len(assign.targets) != 1 or not isinstance(made, ast.Call):
        return False
    if says_device(module, value) or module.qualified(made.func).startswith("torch."):
        return False
    if any(called(each) in TO_DEVICE | {"deepcopy"} for each in calls_in(module, value)):
        return False
    makers = (each for each in module.nodes(ast.FunctionDef) if each.name == called(made))
    return not any(call for each in makers for call in module.calls(*TO_DEVICE, inside=each))


def _is_model(module: Module, scope: ast.AST, name: str) -> bool:
    asked = name in asked_as_modules(module, inside=scope)
    last = name.rpartition(".")[2]
    used = [each for each in module.calls(last, inside=scope) if module.text(each.func) == name]
    known = any(module.kind_of(each.func) is Kind.MODULE for each in used[:1])
    return bool(used) and (asked or known)


def _told(module: Module, use: ast.Call) -> ast.expr | None:
    return next((d for each in given(use) if (d := told_device(module, each)) is not None), None)
