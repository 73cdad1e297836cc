"""What methods of a class add to the containers that its objects keep."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.analyzer.syntax.tree import Tree
from tensortrail.rules.view import FunctionNode

_ADD = frozenset({"append", "insert", "add"})
_REGISTER = frozenset("add_module register_module setattr ModuleList ModuleDict Sequential".split())
Added = tuple[FunctionNode, ast.expr]
"""Where the class adds something to what it keeps: the method, and what is added."""


def added_members(tree: Tree, cls: ast.ClassDef) -> dict[str, list[Added]]:
    """Of `self.layers.append(layer)` and `self.layers[name] = layer`, by the attribute."""
    found: dict[str, list[Added]] = {}
    for owner, value in _additions(tree, cls):
        function = tree.outermost_function_of(value)
        kept = isinstance(owner, ast.Attribute) and getattr(owner.value, "id", "") == "self"
        if isinstance(owner, ast.Attribute) and kept and function is not None:
            found.setdefault(owner.attr, []).append((function, value))
    return found


def registers_parts(tree: Tree, cls: ast.ClassDef) -> bool:
    """The class names modules for torch: what its plain lists hold is moved too."""
    called = (each.func for each in tree.nodes(ast.Call, cls))
    return any(getattr(each, "attr", getattr(each, "id", "")) in _REGISTER for each in called)


def _additions(tree: Tree, cls: ast.ClassDef) -> Iterator[tuple[ast.expr, ast.expr]]:
    for call in tree.nodes(ast.Call, cls):
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr in _ADD and call.args:
            yield func.value, call.args[-1]
    for assign in tree.nodes(ast.Assign, cls):
        for target in assign.targets:
            if isinstance(target, ast.Subscript):
                yield target.value, assign.value
