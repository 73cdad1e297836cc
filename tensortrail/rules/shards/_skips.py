"""Entries of a dict that a loop leaves out of what it writes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules import Module

_KEEPS = frozenset({"append", "add", "update", "setdefault", "extend"})


def skips(module: Module, function: ast.AST) -> Iterator[tuple[ast.For, ast.If, ast.Continue]]:
    """Loops that fill another container, and where they leave an entry out of it."""
    for loop in module.nodes(ast.For, function):
        if not _keeps(loop.body):
            continue
        for left in module.nodes(ast.Continue, loop):
            test = module.parent(left)
            if isinstance(test, ast.If) and _loop_of(module, left) is loop:
                block = test.body if left in test.body else test.orelse
                if not _keeps(block):
                    yield loop, test, left


def iterated(module: Module, source: ast.expr) -> str:
    """`d` of `d`, `d.keys()` and `d.items()`."""
    if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute):
        if source.func.attr in ("keys", "items"):
            return module.text(source.func.value)
        return ""
    return module.text(source) if isinstance(source, (ast.Name, ast.Attribute)) else ""


def is_same_between(module: Module, function: ast.AST, name: str, one: int, other: int) -> bool:
    """The dict of that name is not replaced between the lines, and loses no entry at all."""
    stores = [
        *(each for each in module.nodes(ast.Name, function) if isinstance(each.ctx, ast.Store)),
        *(
            each
            for each in module.nodes(ast.Attribute, function)
            if isinstance(each.ctx, ast.Store)
        ),
    ]
    lines = range(min(one, other), max(one, other) + 1)
    if any(store.lineno in lines and module.text(store) == name for store in stores):
        return False
    for gone in module.nodes(ast.Delete, function):
        if any(module.text(each).startswith(f"{name}[") for each in gone.targets):
            return False
    return not any(
        isinstance(call.func, ast.Attribute) and module.text(call.func.value) == name
        for call in module.calls("pop", "popitem", "clear", inside=function)
    )


def _keeps(block: list[ast.stmt]) -> bool:
    for statement in block:
        for node in ast.walk(statement):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                return True
            if isinstance(node, ast.Attribute) and node.attr in _KEEPS:
                return True
    return False


def _loop_of(module: Module, node: ast.AST) -> ast.AST | None:
    loops = (ast.For, ast.AsyncFor, ast.While)
    return next((up for up in module.ancestors(node) if isinstance(up, loops)), None)
