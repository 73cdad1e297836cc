"""Names by which a program itself calls a device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Site
from tensortrail.rules.shared.calls import quoted
from tensortrail.rules.timeline import Timeline


def device_here(timeline: Timeline, site: Site, device: str) -> str:
    """An expression for the device at that line: a name in scope there that holds it, or else
    the device as a string."""
    tree = timeline.tree(site.file)
    kind = device.partition(":")[0]
    for scope in reversed(list(_scopes(tree, site.line))) if tree else ():
        for name, value in _bound(scope, site.line):
            if _holds(value, device, kind):
                return name
    return quoted(device)


def _scopes(tree: ast.Module, line: int) -> Iterator[ast.Module | ast.FunctionDef]:
    """The module and the functions around the line, the innermost last."""
    yield tree
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.lineno < line <= (node.end_lineno or 0):
            yield node


def _bound(scope: ast.Module | ast.FunctionDef, line: int) -> Iterator[tuple[str, ast.expr]]:
    """Names that are given a value once, before the line."""
    given: dict[str, list[ast.expr]] = {}
    for node in scope.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name) and node.lineno < line:
                given.setdefault(target.id, []).append(node.value)
    yield from ((name, values[0]) for name, values in given.items() if len(values) == 1)


def _holds(value: ast.expr, device: str, kind: str) -> bool:
    """The expression can only be a device, and may be this one."""
    if isinstance(value, ast.IfExp):
        return _holds(value.body, device, kind) or _holds(value.orelse, device, kind)
    if isinstance(value, ast.Call) and ast.unparse(value.func).endswith("device"):
        return any(_holds(each, device, kind) for each in value.args)
    return isinstance(value, ast.Constant) and value.value in (device, kind)
