"""Layers that a method makes for itself: they never become a part of the object."""

from __future__ import annotations

import ast

from tensortrail.analyzer.syntax.tree import Tree


def stays_here(tree: Tree, made: ast.Call) -> bool:
    """The layer is called where it is made, or has a name that is only called and asked for what
    it has: whatever moves the object never reaches it."""
    above, function = tree.parent(made), tree.function_of(made)
    if isinstance(above, ast.Call):
        return above.func is made
    if not isinstance(above, ast.Assign) or function is None or len(above.targets) != 1:
        return False
    name = above.targets[0].id if isinstance(above.targets[0], ast.Name) else ""
    return bool(name) and tree.once(_names_only_called, function).get(name, False)


def _names_only_called(tree: Tree, function: ast.AST) -> dict[str, bool]:
    """Of each name that the function reads: it is never passed on, stored or given back."""
    found: dict[str, bool] = {}
    for use in tree.nodes(ast.Name, function):
        if isinstance(use.ctx, ast.Load):
            above = tree.parent(use)
            called = isinstance(above, ast.Call) and above.func is use
            asked = isinstance(above, ast.Attribute)
            found[use.id] = found.get(use.id, True) and (called or asked)
    return found
