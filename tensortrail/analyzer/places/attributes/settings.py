"""Objects that only hold settings: plain attributes of them are read, and nothing is called."""

from __future__ import annotations

import ast
from collections import defaultdict

from tensortrail.analyzer.places.libraries.library import names
from tensortrail.analyzer.syntax.tree import SCOPES, Tree

_ENOUGH = 2
"""Attributes beside the device that are read."""


def is_settings(tree: Tree, node: ast.expr) -> bool:
    """The name, or attribute of `self`, stands for such an object in the class or function at the
    top of the file that it is read in."""
    around: ast.AST = node
    for up in tree.ancestors(node):
        if isinstance(up, ast.Module):
            break
        around = up
    return isinstance(around, (*SCOPES, ast.ClassDef)) and _named(node) in tree.once(
        _settings_in, around
    )


def _settings_in(tree: Tree, root: ast.AST) -> frozenset[str]:
    read: dict[str, set[str]] = defaultdict(set)
    other = set[str]()
    of_tensors = names("plain", "attributes") | names("keeps", "attributes")
    for node in tree.nodes(ast.Attribute, root):
        owner = _named(node.value)
        if not owner:
            continue
        above = tree.parent(node)
        asked = isinstance(above, ast.Call) and above.func is node
        if asked or node.attr in of_tensors or not isinstance(node.ctx, ast.Load):
            other.add(owner)
        else:
            read[owner].add(node.attr)
    for call in tree.nodes(ast.Call, root):
        other.add(_named(call.func))
    enough = {each for each, attrs in read.items() if len(attrs - {"device"}) >= _ENOUGH}
    return frozenset(enough - other)


def _named(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"self.{node.attr}" if node.value.id == "self" else ""
    return ""
