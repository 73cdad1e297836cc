"""Where a class assigns to the attributes of `self`, and which of them it registers."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TypeAlias

from tensortrail.analyzer.places.attributes.by_name import stored_by_name
from tensortrail.analyzer.places.libraries.library import names
from tensortrail.analyzer.syntax.tree import Tree
from tensortrail.rules.text_of import text_of
from tensortrail.rules.view import FunctionNode

_SETTING_UP = frozenset({"__init__", "__post_init__", "setup", "build", "post_init"})
_IN_THE_MODULE = frozenset({"register_buffer", "register_parameter"})
_STATES = frozenset({"add_state"})
"""Of a metric of torchmetrics, which moves its states."""
Store: TypeAlias = tuple[FunctionNode, ast.expr]
"""Where the class assigns to an attribute of `self`: the attribute, or the value of one that is set
by name."""


def passed_to_register(
    tree: Tree, cls: ast.ClassDef
) -> dict[str, list[tuple[FunctionNode, ast.expr]]]:
    """`self.register_modules(name=value)`, as pipelines of diffusers keep their components."""
    found: dict[str, list[tuple[FunctionNode, ast.expr]]] = {}
    for call in tree.nodes(ast.Call, cls):
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr == "register_modules":
            function = tree.outermost_function_of(call)
            for keyword in call.keywords if function is not None else ():
                if keyword.arg and function is not None:
                    found.setdefault(keyword.arg, []).append((function, keyword.value))
    return found


def registered(tree: Tree, cls: ast.ClassDef) -> set[str]:
    found = set(_named_by(tree, cls, _IN_THE_MODULE))
    states = _named_by(tree, cls, _STATES)
    return found | {name for name, call in states.items() if not _is_list(call)}


def lists_of_states(tree: Tree, cls: ast.ClassDef) -> set[str]:
    """`self.add_state("scores", default=[])` of a metric, which moves the tensors in it."""
    return {name for name, call in _named_by(tree, cls, _STATES).items() if _is_list(call)}


def _named_by(tree: Tree, cls: ast.ClassDef, methods: frozenset[str]) -> dict[str, ast.Call]:
    found: dict[str, ast.Call] = {}
    for call in tree.nodes(ast.Call, cls):
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr in methods:
            given = [each.value for each in call.keywords if each.arg == "name"]
            first = call.args[0] if call.args else next(iter(given), None)
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                found[first.value] = call
    return found


def _is_list(state: ast.Call) -> bool:
    given = [each.value for each in state.keywords if each.arg == "default"]
    return any(isinstance(each, ast.List) for each in (*state.args[1:2], *given))


def stores_of_class(tree: Tree, cls: ast.ClassDef) -> dict[str, list[Store]]:
    """Where the class assigns to attributes of `self`, by their name."""
    found: dict[str, list[Store]] = {}
    for node in tree.nodes(ast.Attribute, cls):
        if not isinstance(node.ctx, ast.Store):
            continue
        if not (isinstance(node.value, ast.Name) and node.value.id == "self"):
            continue
        function = tree.outermost_function_of(node)
        if function is not None:
            found.setdefault(node.attr, []).append((function, node))
    for name, function, value in stored_by_name(tree, cls):
        found.setdefault(name, []).append((function, value))
    return found


def class_kept(tree: Tree, cls: ast.ClassDef, name: str) -> ast.expr | None:
    """`Detect` of `self.detect = Detect(...)`, the only thing that the class keeps there."""
    stores = tree.once(stores_of_class, cls).get(name, [])
    above = tree.parent(stores[0][1]) if len(stores) == 1 else None
    made = above.value if isinstance(above, (ast.Assign, ast.AnnAssign)) else None
    return made.func if isinstance(made, ast.Call) else None


def lasting(tree: Tree, stores: Sequence[Store]) -> list[Store]:
    """Without those that leave it where it is, and those that the same block puts another over."""
    telling = [each for each in stores if not _is_made_of_itself(tree, each[1])]
    if len(telling) < 2:
        return telling
    last = {_block_of(tree, target): target for _, target in telling}
    return [each for each in telling if last[_block_of(tree, each[1])] is each[1]]


def _block_of(tree: Tree, target: ast.expr) -> tuple[ast.AST | None, str]:
    """A statement of several targets, or one within another, is a block of its own."""
    statement = tree.parent(target)
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return target, ""
    above = tree.parent(statement)
    fields = ("body", "orelse", "finalbody")
    return above, next((each for each in fields if statement in getattr(above, each, ())), "")


def _is_made_of_itself(tree: Tree, target: ast.expr) -> bool:
    """`self.table = self.table.view(n, 4)` and `self.table += 1` leave it where it was."""
    above = tree.parent(target)
    if not isinstance(above, ast.Assign) or target is above.value:
        return isinstance(above, ast.AugAssign)
    node = above.value
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr not in names("keeps", "shapes"):
            return False
        node = node.func.value
    return isinstance(node, ast.Attribute) and text_of(node) == text_of(target)


def is_set_outside(stores: Sequence[Store]) -> bool:
    """Some method other than those that set the object up assigns it: it may have moved."""
    return any(function.name not in _SETTING_UP for function, _ in stores)
