"""The source of a node as `ast.unparse` writes it, written once: loops are run more than once."""

from __future__ import annotations

import ast
from typing import Any

_KEPT = "_tensortrail_text"
_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_PLAIN = frozenset({bool, type(None)})


def text_of(node: ast.expr) -> str:
    kept: dict[str, Any] = vars(node)
    found: str | None = kept.get(_KEPT)
    if found is None:
        found = kept[_KEPT] = _simple(node) or ast.unparse(node)
    return found


def _simple(node: ast.expr) -> str:
    """Of most conditions, which need no thought of parentheses; "" for any other node."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = _atom(node.left), _atom(node.comparators[0])
        return f"{left} {_SIGNS[type(node.ops[0])]} {right}" if left and right else ""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _atom(node.operand)
        return f"not {inner}" if inner else ""
    return _atom(node)


def _atom(node: ast.expr) -> str:
    """A name, an attribute of one, True, False, None or a whole number."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = _atom(node.value) if isinstance(node.value, (ast.Name, ast.Attribute)) else ""
        return f"{owner}.{node.attr}" if owner else ""
    if isinstance(node, ast.Constant):
        value = node.value
        if value.__class__ in _PLAIN or (value.__class__ is int and value < 1_000_000):
            return repr(value)
    return ""
