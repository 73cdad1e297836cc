"""Devices that are chosen by whether the machine has a GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tensortrail.rules.devices.shared.named.named_gpus import is_cuda_literal
from tensortrail.rules.view import FunctionNode, Module


def chosen_by_availability(module: Module, function: FunctionNode) -> Iterator[ast.IfExp]:
    """`"cuda" if torch.cuda.is_available() else "cpu"`."""
    for choice in module.nodes(ast.IfExp, function):
        asked = choice.test
        if (
            module.function_of(choice) is function
            and isinstance(asked, ast.Call)
            and module.qualified(asked.func) == "torch.cuda.is_available"
            and is_cuda_literal(module, choice.body)
        ):
            yield choice


def is_default_of(module: Module, choice: ast.IfExp, shown: str) -> bool:
    """It stands in for the device that is at hand, where that one was left out, or comes first."""
    name = shown.rpartition(".")[2]
    function = module.function_of(choice)
    if function is not None and _is_of_later(module, function, choice, shown):
        return True
    if function is not None and choice in ast.walk(function.args):
        return True
    statement = module.statement_of(choice)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if any(module.text(each).rpartition(".")[2] == name for each in targets):
        return True
    if _is_bound_to_it_too(module, function, statement, targets, shown):
        return True
    around = any(
        isinstance(each, (ast.BoolOp, ast.IfExp))
        or (isinstance(each, ast.keyword) and each.arg in (name, "default"))
        for each in _above(module, choice)
    )
    return around or any(guard.mentions(name) for guard in module.guards_of(choice))


def _is_bound_to_it_too(
    module: Module,
    function: FunctionNode | None,
    statement: ast.stmt,
    targets: Sequence[ast.expr],
    shown: str,
) -> bool:
    """`device = get_current_device()` below it, where several processes run."""
    names = {module.text(each) for each in targets}
    return any(
        other is not statement
        and not names.isdisjoint(map(module.text, other.targets))
        and shown in module.text(other.value)
        for other in (module.nodes(ast.Assign, function) if names else ())
    )


def _above(module: Module, node: ast.AST) -> Iterator[ast.AST]:
    for up in module.ancestors(node):
        if isinstance(up, ast.stmt):
            return
        yield up


def _is_of_later(module: Module, function: FunctionNode, choice: ast.expr, shown: str) -> bool:
    """`pipeline.device` of what is made after the choice, and maybe by it."""
    bound = [
        each
        for each in module.uses(shown.partition(".")[0], function)
        if isinstance(each.ctx, ast.Store)
    ]
    return bool(bound) and all(each.lineno > choice.lineno for each in bound)
