"""Which argument of a call a parameter of the called function gets."""

from __future__ import annotations

import ast

from tensortrail.analyzer.places.functions.parameters import is_static
from tensortrail.analyzer.syntax.tree import Tree
from tensortrail.rules.view import FunctionNode


def argument_of(
    tree: Tree, function: FunctionNode, call: ast.Call, parameter: str
) -> ast.expr | None:
    """None if the call leaves it out, or may pass it by `*`. The tree is that of the function."""
    for keyword in call.keywords:
        if keyword.arg == parameter:
            return keyword.value
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if isinstance(tree.parent(function), ast.ClassDef) and not is_static(function):
        names = names[1:]
    if parameter in names and names.index(parameter) < len(call.args):
        before = call.args[: names.index(parameter) + 1]
        return None if any(isinstance(each, ast.Starred) for each in before) else before[-1]
    return None
