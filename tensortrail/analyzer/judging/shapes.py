"""The shape of an expression: what it does, whatever its local names are."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from tensortrail.findings import Finding, Site

_COMMON_NAMES = frozenset({"self", "cls", "torch", "device", "to", "get", "dtype", "type", "shape"})
KINDS = (ast.Call, ast.Compare)
"""The expressions that have one."""
DROPPED = "dropped "
"""Before the shape of an expression whose value nobody uses: where it is used, the risk is not."""


def shape_of_flagged(text: str, finding: Finding) -> tuple[str, frozenset[bytes]] | None:
    """The shape of the flagged expression and its words; None if it says too little."""
    site = finding.site
    lines = text.split("\n")
    if not text or site.start < 0:
        return None
    lines[-1] = lines[-1][: site.end_column - 1] if len(lines) > 1 else lines[-1]
    flagged = "\n".join(lines)[site.column - 1 :]
    if len(lines) == 1:
        flagged = lines[0][site.column - 1 : site.end_column - 1]
    try:
        node = ast.parse(flagged.strip()).body[0]
    except (SyntaxError, ValueError, IndexError, RecursionError, MemoryError):
        return None
    expression = node.value if isinstance(node, (ast.Expr, ast.Return, ast.Assign)) else None
    if not isinstance(expression, KINDS):
        return None
    words = [word for word in _words(expression) if word not in _COMMON_NAMES]
    if not words:
        return None
    risk = DROPPED if isinstance(node, ast.Expr) and _stands_alone(text, site) else ""
    if not risk and _names_only(expression):
        return None
    return risk + shape_of(expression), frozenset(word.encode() for word in words)


def _names_only(node: ast.expr) -> bool:
    """`model.state_dict()`: what is risky about it is the object, and others have other objects."""
    if not isinstance(node, ast.Call) or node.args or node.keywords:
        return False
    owner = node.func
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    return isinstance(owner, ast.Name) and owner is not node.func


def _stands_alone(text: str, site: Site) -> bool:
    """Nothing is made of the flagged expression: it is a statement."""
    lines = text.split("\n")
    before, after = lines[0][: site.column - 1], lines[-1][site.end_column - 1 :]
    return before.rpartition(";")[2].strip() == "" and after.strip()[:1] in ("", "#", ";")


def shape_of(node: ast.expr) -> str:
    """The expression with local names made alike; callees, attributes and constants stay.

    "" for one that is nested too deeply: it is like no other."""
    callees = {id(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)}
    parts: list[str] = []

    def visit(each: ast.AST) -> None:
        if isinstance(each, ast.Name):
            parts.append(each.id if id(each) in callees else "_")
            return
        parts.append(type(each).__name__)
        if isinstance(each, ast.Attribute):
            root = each.value
            parts.append(each.attr)
            if isinstance(root, ast.Attribute) and id(each) not in callees:
                parts.append("_")  # however deep the owner lies
                return
        elif isinstance(each, ast.Constant):
            parts.append(repr(each.value).replace(" ", "_"))
        elif isinstance(each, ast.keyword):
            parts.append(each.arg or "**")
        parts.append("(")
        for child in ast.iter_child_nodes(each):
            if not isinstance(child, ast.expr_context):
                visit(child)
        parts.append(")")

    try:
        visit(node)
    except RecursionError:
        return ""
    return " ".join(parts)


def _words(node: ast.AST) -> Iterable[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute):
            yield each.attr
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Name):
            yield each.func.id
