"""`device or dtype`: what stands in for an argument that was not given, and is of another sort."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.annotations import names_type
from tensortrail.rules.shared.functions import parameters
from tensortrail.rules.view import Module

_SORTS = {"torch.device": "device", "torch.dtype": "dtype"}


def of_another_sort(module: Module) -> Iterator[tuple[ast.BoolOp, str, str]]:
    """By the annotations of two arguments: each `x or y`, what `x` is, and what `y` is instead."""
    for either in module.nodes(ast.BoolOp):
        if not isinstance(either.op, ast.Or) or len(either.values) != 2:
            continue
        first, second = (_sort_of(module, each) for each in either.values)
        if first and second and first != second:
            yield either, first, second


def _sort_of(module: Module, node: ast.expr) -> str:
    """What an argument is, if it is nothing else too, and keeps what it was given."""
    function = module.function_of(node)
    if function is None or not isinstance(node, ast.Name):
        return ""
    if any(isinstance(each.ctx, ast.Store) for each in module.uses(node.id, function)):
        return ""
    said = next((each.annotation for each in parameters(function) if each.arg == node.id), None)
    sorts = [sort for name, sort in _SORTS.items() if names_type(module, said, name)]
    return sorts[0] if len(sorts) == 1 else ""
