"""What code puts in the place of an argument that was left out, and keeps elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeAlias

from tensortrail.findings import Fix, Safety
from tensortrail.rules import Module
from tensortrail.rules.shared.objects import is_name, is_none
from tensortrail.rules.view import FunctionNode

Assignment: TypeAlias = ast.Assign | ast.AnnAssign


def settled_elsewhere(module: Module, function: FunctionNode, name: str) -> Iterator[Assignment]:
    """Assignments to something else of the argument, or of what stands for it."""
    statements: list[Assignment] = [*module.nodes(ast.Assign, function)]
    for statement in [*statements, *module.nodes(ast.AnnAssign, function)]:
        own = module.function_of(statement) is function and statement.value is not None
        if not own or not isinstance(target_of(statement), (ast.Name, ast.Attribute)):
            continue
        if _has_default(module, statement.value, name) or _on_both(module, statement, name):
            yield statement


def target_of(statement: Assignment) -> ast.expr:
    return statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]


def _has_default(module: Module, value: ast.expr | None, name: str) -> bool:
    """`device or pick()`, `device if device is not None else pick()`."""
    if isinstance(value, ast.BoolOp) and isinstance(value.op, ast.Or):
        return is_name(value.values[0], name) and not _says_nothing(module, value.values[-1])
    if isinstance(value, ast.IfExp) and isinstance(value.body, ast.BoolOp):
        return _has_default(module, value.body, name)  # `device or "cuda" if there_is else "cpu"`
    if isinstance(value, ast.IfExp) and _is_asked_for(module, value.body, name):
        other = value.orelse if is_name(value.body, name) else value.body
        chosen = not _says_nothing(module, other) and not _mentions(other, name)
        return chosen and (is_name(value.body, name) or is_name(value.orelse, name))
    return False


def _on_both(module: Module, statement: Assignment, name: str) -> bool:
    """The last of two assignments to the same, in the branches of a test of the argument."""
    branch = module.parent(statement)
    if not isinstance(branch, ast.If) or not branch.orelse:
        return False
    kept = module.text(target_of(statement))
    values = [
        each.value
        for block in (branch.body, branch.orelse)
        for each in block
        if isinstance(each, (ast.Assign, ast.AnnAssign))
        and each.value is not None
        and module.text(target_of(each)) == kept
    ]
    given = [
        each for each in values if is_name(each, name) or _is_made_a_device(module, each, name)
    ]
    both = len(values) == 2 and len(given) == 1 and statement in branch.orelse
    others = [each for each in values if each not in given]
    return (
        both
        and not any(_mentions(each, name) for each in others)
        and _is_asked_for(module, statement, name)
    )


def is_asked(module: Module, node: ast.AST, name: str) -> bool:
    """Some condition around it is about the argument."""
    return any(_mentions(guard.test, name) for guard in module.guards_of(node))


def _is_asked_for(module: Module, node: ast.AST, name: str) -> bool:
    """Some condition around it is whether the argument was given."""
    return any(
        is_name(part, name) or (is_name(getattr(part, "left", part), name) and _has_none(part))
        for guard in module.guards_of(node)
        for part in _parts(guard.test)
    )


def _parts(test: ast.expr) -> list[ast.expr]:
    if isinstance(test, ast.BoolOp):
        return [part for each in test.values for part in _parts(each)]
    return _parts(test.operand) if isinstance(test, ast.UnaryOp) else [test]


def _has_none(part: ast.expr) -> bool:
    return isinstance(part, ast.Compare) and any(map(is_none, part.comparators))


def settled_instead(module: Module, use: ast.Name, kept: str) -> Fix | None:
    return module.fix(f"use `{kept}`", Safety.UNSAFE, module.replace(use, kept))


def _says_nothing(module: Module, value: ast.expr) -> bool:
    """None, and the CPU, where things are without a device."""
    said = value
    if isinstance(value, ast.Call) and module.qualified(value) == "torch.device" and value.args:
        said = value.args[0]
    constant = module.value_of(said).constant
    return constant is None or constant == "cpu"


def _is_made_a_device(module: Module, value: ast.expr, name: str) -> bool:
    """`torch.device(device)`."""
    if not isinstance(value, ast.Call) or module.qualified(value) != "torch.device":
        return False
    return bool(value.args) and is_name(value.args[0], name)


def _mentions(node: ast.expr, name: str) -> bool:
    return any(is_name(each, name) for each in ast.walk(node))
