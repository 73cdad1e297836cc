"""Which call made the object that a method is called on, where a glance tells."""

from __future__ import annotations

import ast

from tensortrail.analyzer.syntax.tree import Tree
from tensortrail.analyzer.values.bound_once import names_bound_once


def maker_of(tree: Tree, node: ast.expr) -> ast.Call | None:
    """`Net(8)` itself, or the call that a name of this function or file is bound to, once."""
    if isinstance(node, ast.Call):
        return node
    if not isinstance(node, ast.Name):
        return None
    scope = tree.outermost_function_of(node) or tree.root
    bound = tree.once(_bound_to_calls, scope)
    if node.id not in bound and scope is not tree.root and node.id not in _stored(tree, scope):
        bound = tree.once(_bound_to_calls, tree.root)
    return bound.get(node.id)


def _bound_to_calls(tree: Tree, scope: ast.AST) -> dict[str, ast.Call]:
    """By names that one assignment of the scope binds."""
    once = names_bound_once(tree, scope)
    return {
        each.targets[0].id: each.value
        for each in tree.nodes(ast.Assign, scope)
        if isinstance(each.targets[0], ast.Name)
        and each.targets[0].id in once
        and isinstance(each.value, ast.Call)
    }


def _stored(tree: Tree, scope: ast.AST) -> set[str]:
    names = (each.id for each in tree.nodes(ast.Name, scope) if isinstance(each.ctx, ast.Store))
    return {*names, *(each.arg for each in tree.nodes(ast.arg, scope))}
