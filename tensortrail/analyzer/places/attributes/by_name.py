"""Attributes that a class sets and reads by name, as `setattr(self, "table", ...)` does."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.analyzer.facts.known import REGISTERING
from tensortrail.analyzer.syntax.tree import Tree
from tensortrail.rules.set_by_name import is_one_of_many, name_written, set_by_name
from tensortrail.rules.view import FunctionNode

_PAST_THE_MODULE = frozenset({"object.__setattr__"})


def stored_by_name(tree: Tree, cls: ast.ClassDef) -> Iterator[tuple[str, FunctionNode, ast.expr]]:
    """The name, the method and the value."""
    for node in (*tree.nodes(ast.Call, cls), *tree.nodes(ast.Assign, cls)):
        found = set_by_name(node)
        function = tree.outermost_function_of(node) if found is not None else None
        if found is not None and function is not None:
            yield found[0], function, found[1]


def goes_past_the_module(tree: Tree, value: ast.expr) -> bool:
    """`object.__setattr__(self, "model", model)`: the module does not get to know it."""
    above = tree.parent(value)
    if isinstance(above, ast.Call) and set_by_name(above) is not None:
        return ast.unparse(above.func) in _PAST_THE_MODULE
    return isinstance(above, ast.Assign) and set_by_name(above) is not None


def may_be_registered(tree: Tree, cls: ast.ClassDef) -> bool:
    """Buffers, parameters or modules get names that are not written out."""
    for call in tree.nodes(ast.Call, cls):
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr in REGISTERING:
            name = next(iter(call.args), None)
            written = name_written(name) if name is not None else None
            if written is None or is_one_of_many(written):
                return True
    return False
