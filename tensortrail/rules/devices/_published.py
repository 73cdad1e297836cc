"""Files that a project publishes: their addresses stand in a table of its code."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from tensortrail.rules.view import Module


def is_published(module: Module, behind: Iterable[ast.expr]) -> bool:
    """The name of the file comes out of such a table, or of a function that looks into one."""
    return any(_is_looked_up(module, each) or _is_found(module, each) for each in behind)


def _is_found(module: Module, node: ast.expr) -> bool:
    """`weights_of("small")`, where `weights_of` is a function of the project."""
    if not isinstance(node, ast.Call):
        return False
    return bool(module.about(module.qualified(node.func), looks_up))


def looks_up(module: Module, node: ast.AST) -> bool:
    """In a table of addresses, or at one that is written there."""
    looked_up = (*module.nodes(ast.Subscript, node), *module.calls("get", inside=node))
    return any(_is_looked_up(module, each) for each in looked_up) or any(
        _is_address(each)
        for call in module.nodes(ast.Call, node)
        for each in (*call.args, *(keyword.value for keyword in call.keywords))
    )


def _is_looked_up(module: Module, node: ast.expr) -> bool:
    """`URLS[name]`, `URLS.get(name)`"""
    match node:
        case ast.Subscript(value=table) | ast.Call(func=ast.Attribute(value=table, attr="get")):
            return any(map(_is_table, module.value_of(table).origins))
    return False


def _is_table(node: ast.expr) -> bool:
    return isinstance(node, ast.Dict) and any(map(_is_address, node.values))


def _is_address(node: ast.expr) -> bool:
    """`"https://..."`, `f"{SERVER}/small.pth"`"""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    texts = [str(each.value) for each in parts if isinstance(each, ast.Constant)]
    sign = "/" if isinstance(node, ast.JoinedStr) else "://"
    return any(sign in each for each in texts)
