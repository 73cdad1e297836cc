"""What the methods of a class put into the containers that its instances keep."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace

from tensortrail.analyzer.syntax.tree import Tree
from tensortrail.analyzer.values import containers
from tensortrail.analyzer.values.state import join_contents
from tensortrail.rules.unchanging import unchanging
from tensortrail.rules.words import UNKNOWN_VALUE, Contents, Value

_MOST = 32
"""Statements that are asked what they put into one container; a table has hundreds."""


@unchanging(frozen=True, slots=False)
class Addition:
    """`self.xs.append(value)`, `self.d[k] = value`, `self.d[k].append(value)`."""

    attribute: str
    value: ast.expr
    method: str = ""
    """Empty for an assignment by key."""
    under_key: bool = False


def additions_of(tree: Tree, cls: ast.ClassDef) -> dict[str, list[Addition]]:
    """By the name of the attribute that keeps the container."""
    found: dict[str, list[Addition]] = {}
    for each in (*_by_method(tree, cls), *_by_key(tree, cls), *_by_sum(tree, cls)):
        found.setdefault(each.attribute, []).append(each)
    return found


def with_additions(
    container: Value, additions: list[Addition], value_of: Callable[[ast.expr], Value]
) -> Value:
    """The container with all that is put into it; what it holds is unknown if that is too much."""
    contents = container.contents
    if contents is None or contents.declared or not additions:
        return container
    if len(additions) > _MOST:
        return replace(container, contents=None)
    for each in additions:
        held = _held(each, value_of(each.value))
        contents = join_contents(contents, replace(held, by_key=contents.by_key))
        if contents is None:
            break
    return replace(container, contents=contents)


def _held(addition: Addition, value: Value) -> Contents:
    if not addition.method:
        return containers.contents_of([value])
    given = [value] * 2  # wherever the method takes it
    held = containers.added_by(addition.method, given) or Contents(UNKNOWN_VALUE)
    return containers.contents_of([containers.holding(held)]) if addition.under_key else held


def _by_method(tree: Tree, cls: ast.ClassDef) -> Iterator[Addition]:
    for call in tree.nodes(ast.Call, cls):
        func = call.func
        if not (isinstance(func, ast.Attribute) and func.attr in containers.ADDING and call.args):
            continue
        keyed = isinstance(func.value, ast.Subscript)
        name = _of_self(func.value.value if isinstance(func.value, ast.Subscript) else func.value)
        if name:
            position = containers.ADDS_ONE.get(func.attr, 0)
            yield Addition(name, call.args[min(position, len(call.args) - 1)], func.attr, keyed)


def _by_key(tree: Tree, cls: ast.ClassDef) -> Iterator[Addition]:
    for target in tree.nodes(ast.Subscript, cls):
        if isinstance(target.ctx, ast.Store) and not isinstance(target.slice, ast.Slice):
            name = _of_self(target.value)
            if name:
                yield Addition(name, target)


def _by_sum(tree: Tree, cls: ast.ClassDef) -> Iterator[Addition]:
    for each in tree.nodes(ast.AugAssign, cls):
        name = _of_self(each.target)
        if name and isinstance(each.op, (ast.Add, ast.BitOr)):
            yield Addition(name, each.value, "extend")


def _of_self(node: ast.expr) -> str:
    of_self = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    return node.attr if of_self and node.value.id == "self" else ""  # type: ignore[attr-defined]
