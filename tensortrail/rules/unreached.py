"""Code that nothing comes to: behind the end of its block, or under a test that never holds."""

from __future__ import annotations

import ast

from tensortrail.rules.view import Module
from tensortrail.rules.words import Guard

_ENDS = (ast.Raise, ast.Return, ast.Continue, ast.Break)
_BLOCKS = ("body", "orelse", "finalbody")


def is_behind_the_end(module: Module, node: ast.AST) -> bool:
    """`raise NotImplementedError`, and further down in the same block stands the node."""
    child = node
    for up in module.ancestors(node):
        if isinstance(child, ast.stmt) and any(
            isinstance(each, _ENDS) for each in _before(up, child)
        ):
            return True
        if isinstance(up, ast.Module):
            return False
        child = up
    return False


def is_excluded(module: Module, node: ast.AST) -> bool:
    """`device = "cuda"`, and the node stands in the other branch of `if device == "cuda"`."""
    return any(_never_holds(module, guard) for guard in module.guards_of(node) if guard.exact)


def _never_holds(module: Module, guard: Guard) -> bool:
    match guard.test:
        case ast.Compare(
            left=ast.Name() as name,
            ops=[ast.Eq() | ast.NotEq() as sign],
            comparators=[ast.Constant(value=str(asked))],
        ):
            told = module.value_of(name)
            own = isinstance(told.constant, str) and all(
                module.function_of(each) is module.function_of(name) for each in told.origins
            )
            meant_equal = isinstance(sign, ast.Eq) is guard.holds
            return own and bool(told.origins) and (told.constant == asked) is not meant_equal
    return False


def _before(parent: ast.AST, child: ast.stmt) -> list[ast.stmt]:
    """The statements of its block that stand before it."""
    for name in _BLOCKS:
        block = getattr(parent, name, None)
        if isinstance(block, list) and child in block:
            return block[: block.index(child)]
    return []
