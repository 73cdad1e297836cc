"""What may lie anywhere: an index, which torch takes from the CPU for a tensor of any device, and
what is only read out as numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.devices.shared.calls.explained import is_followed_by
from tensortrail.rules.devices.shared.modules.attribute_reads import is_an_index
from tensortrail.rules.shared.objects import called
from tensortrail.rules.view import Module

_STEPS = frozenset(
    "argsort argmax argmin expand view reshape unsqueeze squeeze flatten long to t".split()
)
"""Methods that give an index of what is put in order, or another view of an index."""
_NUMBERS = frozenset({"item", "tolist", "numpy"})
_DEPTH = 4
"""Names that it goes through."""


def only_indexes(module: Module, made: ast.expr, depth: int = _DEPTH) -> bool:
    """`order = torch.rand(n).argsort()`, and `rows[order]` is all that is done with it."""
    node = made
    for up in _methods(module, made):
        node = up
    if is_an_index(module, node):
        return True
    stored = module.parent(node)
    target = stored.targets[0] if isinstance(stored, ast.Assign) else None
    if depth == 0 or not isinstance(target, ast.Name):
        return False
    reads = _reads(module, node, target.id)
    return bool(reads) and all(only_indexes(module, each, depth - 1) for each in reads)


def is_read_out(module: Module, made: ast.expr) -> bool:
    """`scores = torch.tensor(found)`, and only `scores.mean().item()` is asked of it."""
    stored = module.parent(made)
    target = stored.targets[0] if isinstance(stored, ast.Assign) else None
    reads = _reads(module, made, target.id) if isinstance(target, ast.Name) else []
    return bool(reads) and all(is_followed_by(module, each, _NUMBERS) for each in reads)


def _reads(module: Module, node: ast.AST, name: str) -> list[ast.Name]:
    named = module.uses(name, module.function_of(node))
    return [each for each in named if isinstance(each.ctx, ast.Load)]


def _methods(module: Module, node: ast.AST) -> Iterator[ast.Call]:
    """`x.argsort(dim=1)` and `x.argsort(dim=1).long()` of `x`."""
    while isinstance(member := module.parent(node), ast.Attribute) and member.value is node:
        call = module.parent(member)
        if not isinstance(call, ast.Call) or call.func is not member or called(call) not in _STEPS:
            return
        yield call
        node = call
