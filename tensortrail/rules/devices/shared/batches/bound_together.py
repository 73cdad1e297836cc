"""Names that one round of a loop binds together."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tensortrail.rules.devices.shared.written_for.device_aware import is_in_module
from tensortrail.rules.shared.functions import parameter_names
from tensortrail.rules.shared.objects import called
from tensortrail.rules.view import FunctionNode, Module


def bound_together(module: Module) -> Iterator[tuple[ast.AST, Sequence[str]]]:
    """`for x, y in loader`, `for i, (x, y) in enumerate(loader)`, `x, y = batch` in such a loop."""
    for loop in module.nodes(ast.For):
        names = names_bound(without_counter(loop))
        if len(names) > 1:
            yield loop, names
        if len(names) != 1:
            continue
        for assign in module.nodes(ast.Assign, loop):
            value = assign.value
            if isinstance(value, ast.Name) and value.id == names[0]:
                parts = names_bound(assign.targets[0])
                if len(parts) > 1:
                    yield loop, parts
    yield from _taken_apart(module)


def _taken_apart(module: Module) -> Iterator[tuple[ast.AST, Sequence[str]]]:
    """`x, y = batch` of an argument, in a plain function or class: no framework moves it before;
    and `x, y = next(rows)`."""
    for assign in module.nodes(ast.Assign):
        parts = names_bound(assign.targets[0]) if isinstance(assign.targets[0], ast.Tuple) else ()
        function = module.function_of(assign) if len(parts) > 1 else None
        if function is None or is_in_module(module, assign):
            continue
        is_next = isinstance(assign.value, ast.Call) and called(assign.value) == "next"
        if is_next or _is_an_argument(module, function, assign.value):
            yield function, parts


def _is_an_argument(module: Module, function: FunctionNode, value: ast.expr) -> bool:
    if not isinstance(value, ast.Name) or value.id not in parameter_names(function):
        return False
    return not any(isinstance(each.ctx, ast.Store) for each in module.uses(value.id, function))


def without_counter(loop: ast.For) -> ast.expr:
    target, over = loop.target, loop.iter
    counted = isinstance(over, ast.Call) and called(over) == "enumerate"
    return target.elts[-1] if counted and isinstance(target, ast.Tuple) else target


def names_bound(target: ast.expr) -> Sequence[str]:
    """The names of the innermost tuple."""
    if isinstance(target, ast.Name):
        return [target.id]
    if not isinstance(target, (ast.Tuple, ast.List)):
        return []
    inner = [each for each in target.elts if isinstance(each, (ast.Tuple, ast.List))]
    if len(inner) == 1:
        return names_bound(inner[0])
    return [each.id for each in target.elts if isinstance(each, ast.Name) and each.id != "_"]
