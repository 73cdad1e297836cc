"""The call in a run's source that took the state dict of a wrapper and not of its module."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Edit
from tensortrail.rules.timeline import Event, Timeline


def of_the_module(timeline: Timeline, saved: Event, prefix: str) -> Edit | None:
    """`model.state_dict()` as `model.module.state_dict()`, where the save was given it."""
    site = saved.site
    tree = timeline.tree(site.file) if site else None
    if tree is None or site is None:
        return None
    keys = str(saved.facts.get("key", "")).partition(f"{prefix}.")[0].split(".")
    for given in _given(tree, site.line):
        taken = _inside(tree, given, [each for each in keys if each])
        if taken is not None:
            text = f"{ast.unparse(taken)}.{prefix}"
            return timeline.replace(site.file, taken, text)
    return None


def _given(tree: ast.Module, line: int) -> Iterator[ast.expr]:
    """What the calls over that line are given first."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or 0):
            yield from node.args[:1]


def _inside(tree: ast.Module, given: ast.expr, keys: list[str]) -> ast.expr | None:
    """`model` of `{"model": model.state_dict()}`, under the keys with which it was saved."""
    if isinstance(given, ast.Name):
        assigned = _assigned(tree, given)
        return _inside(tree, assigned, keys) if assigned else None
    if isinstance(given, ast.Dict) and keys:
        for key, value in zip(given.keys, given.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == keys[0]:
                return _inside(tree, value, keys[1:])
    if isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and not keys:
        return given.func.value if given.func.attr == "state_dict" else None
    return None


def _assigned(tree: ast.Module, name: ast.Name) -> ast.expr | None:
    """The value that the name got last above the line; not that of itself."""
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and node.lineno < name.lineno
        and any(isinstance(each, ast.Name) and each.id == name.id for each in node.targets)
    ]
    last = max(found, key=lambda node: node.lineno, default=None)
    return last.value if last and not isinstance(last.value, ast.Name) else None
