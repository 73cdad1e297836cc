"""Code behind a statement that ends its block: nothing comes to it."""

from __future__ import annotations

import ast

from tensortrail.rules.view import Module

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


def _before(parent: ast.AST, child: ast.stmt) -> list[ast.stmt]:
    """The statements of its block that stand before it."""
    for name in _BLOCKS:
        block = getattr(parent, name, None)
        if isinstance(block, list) and child in block:
            return block[: block.index(child)]
    return []
