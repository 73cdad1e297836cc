"""The source of a node as `ast.unparse` writes it, written once: loops are run more than once."""

from __future__ import annotations

import ast
from typing import Any

_KEPT = "_tensortrail_text"
_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_PLAIN = frozenset({bool, type(None), str})
_BINDING = (ast.UnaryOp, ast.Compare)
"""What may need parentheses beside `and` and `or`."""


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
    return _written_in_parts(node) or _atom(node)


def _written_in_parts(node: ast.expr) -> str:
    """A call of plain arguments, a place of a container, and `a and b`; "" for any other node."""
    if isinstance(node, ast.Call):
        owner = _atom(node.func)
        given = [_atom(each) for each in node.args]
        named = [(each.arg, _atom(each.value)) for each in node.keywords]
        if not owner or not all(given) or not all(name and said for name, said in named):
            return ""
        return f"{owner}({', '.join([*given, *(f'{name}={said}' for name, said in named)])})"
    if isinstance(node, ast.Subscript):
        owner, index = _atom(node.value), _atom(node.slice)
        return f"{owner}[{index}]" if owner and index else ""
    if isinstance(node, ast.BoolOp):
        word = "and" if isinstance(node.op, ast.And) else "or"
        parts = [_operand(each, at, word) for at, each in enumerate(node.values)]
        return f" {word} ".join(parts) if all(parts) else ""
    return ""


def _operand(node: ast.expr, at: int, word: str) -> str:
    """Python binds each operand closer than the one before it, and writes parentheses for that."""
    if isinstance(node, (ast.BoolOp, ast.IfExp)):
        return ""
    closest = at if word == "and" else at - 1
    is_loose = closest > 0 if isinstance(node, ast.UnaryOp) else closest > 1
    said = _simple(node)
    return f"({said})" if said and is_loose and isinstance(node, _BINDING) else said


def _atom(node: ast.expr) -> str:
    """A name, an attribute of one, True, False, None, a text or a whole number."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = _atom(node.value) if isinstance(node.value, (ast.Name, ast.Attribute)) else ""
        return f"{owner}.{node.attr}" if owner else ""
    if isinstance(node, ast.Constant):
        value = node.value
        is_whole = value.__class__ is int and value < 1_000_000
        if is_whole or (value.__class__ in _PLAIN and node.kind is None):
            return repr(value)
    return ""
