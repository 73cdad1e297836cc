"""Attributes that are made when they are first needed: `if self.mask is None: self.mask = ...`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.analyzer.places.attributes.moved_attributes import moved_by_the_class
from tensortrail.analyzer.places.attributes.stored_attributes import registered, stores_of_class
from tensortrail.analyzer.places.held.environment import Environment
from tensortrail.analyzer.syntax.tree import Tree
from tensortrail.rules.places import What, Where

_MADE_HERE = frozenset({Where.DEFAULT, Where.HOST})


def keep_what_was_made(
    tree: Tree, cls: ast.ClassDef, node: ast.If, made: Environment, joined: Environment
) -> None:
    """After the `if`, the attribute is what its branch made: in this call, or in an earlier one."""
    for name in _asked_for(node.test):
        held = made.values.get(f"self.{name}")
        if held is None or held.what is not What.TENSOR or not held.places:
            continue
        if all(each.where in _MADE_HERE for each in held.places) and _is_set_here(
            tree, cls, node, name
        ):
            joined.values[f"self.{name}"] = held


def _asked_for(test: ast.expr) -> Iterator[str]:
    """`mask` of `self.mask is None or len(self.mask) < n`, and of `not hasattr(self, "mask")`."""
    for part in test.values if isinstance(test, ast.BoolOp) and _is_or(test) else (test,):
        match part:
            case ast.Compare(
                left=ast.Attribute(value=ast.Name(id="self"), attr=name),
                ops=[ast.Is() | ast.Eq()],
                comparators=[ast.Constant(value=None)],
            ):
                yield name
            case ast.UnaryOp(
                op=ast.Not(),
                operand=ast.Call(
                    func=ast.Name(id="hasattr"),
                    args=[ast.Name(id="self"), ast.Constant(value=str(name))],
                ),
            ):
                yield name


def _is_or(test: ast.BoolOp) -> bool:
    return isinstance(test.op, ast.Or)


def _is_set_here(tree: Tree, cls: ast.ClassDef, node: ast.If, name: str) -> bool:
    """Nothing has set it before the first call but to None, and no move takes it along."""
    if name in tree.once(moved_by_the_class, cls) or name in tree.once(registered, cls):
        return False
    around, end = tree.function_of(node), node.end_lineno or 0
    for function, target in tree.once(stores_of_class, cls).get(name, ()):
        here = function is around and target.lineno >= node.lineno
        if not here and not _is_none(tree, target):
            return False
        if here and target.lineno <= end and not _stands_in(tree, node.body, target):
            return False
    return True


def _is_none(tree: Tree, target: ast.expr) -> bool:
    statement = tree.parent(target)
    given = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
    return isinstance(given, ast.Constant) and given.value is None


def _stands_in(tree: Tree, body: list[ast.stmt], target: ast.expr) -> bool:
    return any(each in body for each in tree.ancestors(target))
