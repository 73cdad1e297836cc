"""Loops that ask each module below another for its first parameter."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules import Module
from tensortrail.rules.shared.objects import names_in
from tensortrail.rules.view import FunctionNode

_ALL_BELOW = frozenset({"modules", "named_modules", "children", "named_children"})
_SETTLES = ("isinstance", "hasattr", "parameters", "type(")
"""What a condition asks that leaves only modules with parameters of their own."""


def parameters_of_each(module: Module, function: FunctionNode) -> Iterator[ast.Call]:
    """`for m in model.modules(): next(m.parameters())`, where some `m` may have none."""
    for loop in module.nodes(ast.For, function):
        source = loop.iter
        if not (isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute)):
            continue
        if source.func.attr not in _ALL_BELOW:
            continue
        for call in module.calls("next", inside=loop):
            owner = _parameters_of(call)
            if not (isinstance(owner, ast.Name) and owner.id in names_in(loop.target)):
                continue
            if not _is_settled(module, call, module.text(owner)):
                yield call


def _parameters_of(node: ast.expr) -> ast.expr | None:
    """`m` of `next(m.parameters())`, which has no default."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1):
        return None
    inner = node.args[0]
    if node.func.id != "next" or not isinstance(inner, ast.Call):
        return None
    func = inner.func
    return func.value if isinstance(func, ast.Attribute) and func.attr == "parameters" else None


def _is_settled(module: Module, call: ast.Call, name: str) -> bool:
    about = [each.text for each in module.guards_of(call) if name in each.text]
    asked = any(word in text for text in about for word in _SETTLES)
    return asked or any(isinstance(each, ast.Try) for each in module.ancestors(call))
