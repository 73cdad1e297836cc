"""Moves whose result is kept under a name that nobody reads again, or under none."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules import Kind, Module
from tensortrail.rules.shared.moves import CASTS, MOVES
from tensortrail.rules.shared.objects import called, receiver, root_of
from tensortrail.rules.view import FunctionNode

_OVER = ("named_parameters", "parameters", "named_buffers", "buffers")
_MAKES = MOVES | CASTS | {"float"}


def rebound_in_loops(module: Module) -> Iterator[tuple[ast.Assign, ast.Call]]:
    """`for p in m.parameters(): p = p.to(...)`, where the loop does not read `p` after it."""
    for assign in module.nodes(ast.Assign):
        target, value = assign.targets[0], assign.value
        if not isinstance(target, ast.Name) or not isinstance(value, ast.Call):
            continue
        owner = receiver(value)
        if called(value) not in _MAKES or not isinstance(owner, ast.Name) or owner.id != target.id:
            continue
        loop = next((up for up in module.ancestors(assign) if isinstance(up, ast.For)), None)
        if loop is None or not _gives_weights(loop, target.id):
            continue
        if not _is_read_after(module, loop, assign, target.id):
            yield assign, value


def _gives_weights(loop: ast.For, name: str) -> bool:
    given = isinstance(loop.iter, ast.Call) and called(loop.iter) in _OVER
    return given and any(
        isinstance(each, ast.Name) and each.id == name for each in ast.walk(loop.target)
    )


def _is_read_after(module: Module, loop: ast.For, assign: ast.Assign, name: str) -> bool:
    end = (assign.end_lineno or assign.lineno, assign.end_col_offset or 0)
    return any(
        each.id == name and (each.lineno, each.col_offset) > end
        for each in module.nodes(ast.Name, loop)
    )


def copies_not_in_place(module: Module) -> Iterator[tuple[ast.Expr, ast.Call]]:
    """`t.data.copy(other)` as a statement: tensors have `copy_`, and no `copy`."""
    for statement in module.nodes(ast.Expr):
        call = statement.value
        if isinstance(call, ast.Call) and called(call) == "copy" and len(call.args) == 1:
            owner = receiver(call)
            if isinstance(owner, ast.Attribute) and owner.attr == "data":
                yield statement, call


def may_be_tensor_given_back(module: Module, statement: ast.Expr, subject: ast.expr) -> bool:
    """A tensor or a module by its annotation, which the function returns as it is."""
    root = root_of(subject)
    function = module.function_of(statement)
    if not isinstance(root, ast.Name) or root is not subject or function is None:
        return False
    if not _is_returned(module, function, root.id):
        return False
    value = module.value_of(subject)
    both = value.sure and value.may_be(Kind.TENSOR) and value.may_be(Kind.MODULE)
    return both and not any(guard.mentions("isinstance") for guard in module.guards_of(statement))


def _is_returned(module: Module, function: FunctionNode, name: str) -> bool:
    return any(
        isinstance(each.value, ast.Name) and each.value.id == name
        for each in module.nodes(ast.Return, function)
    )
