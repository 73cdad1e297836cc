"""Which attributes the methods of a class move."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from tensortrail.analyzer.syntax.tree import SCOPES, Tree
from tensortrail.rules.shared.moves import MOVE_METHODS, TO_DEVICE

_MOVERS = MOVE_METHODS | {"_replicate_for_data_parallel"}
_GIVE_THE_MODULE = frozenset("eval train requires_grad_ half float double bfloat16 to cuda".split())


def is_moved(tree: Tree, cls: ast.ClassDef, name: str) -> bool:
    """Some method says `self.name.to(...)`, `self.name.eval().to(...)`, or moves a part of it."""
    return name in tree.once(_moved_in_methods, cls)


def _moved_in_methods(tree: Tree, cls: ast.ClassDef) -> frozenset[str]:
    """The attributes on the way to each object that the class moves. `layers[0].to(device)` after
    `layers = self.model.layers` moves a part of `model`."""
    stands_for: dict[str, frozenset[str]] = {}
    for assign in tree.nodes(ast.Assign, cls):
        for target in assign.targets:
            if isinstance(target, ast.Name):
                known = stands_for.get(target.id, frozenset())
                stands_for[target.id] = known | _on_the_way(assign.value, stands_for)
    moves = (
        each.func for each in tree.nodes(ast.Call, cls) if isinstance(each.func, ast.Attribute)
    )
    owners = [the_module_itself(each.value) for each in moves if each.attr in TO_DEVICE]
    return frozenset().union(*(_on_the_way(each, stands_for) for each in owners))


def _on_the_way(node: ast.expr, stands_for: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """`model` and `layers` for `self.model.layers[0]`."""
    found = set[str]()
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        node = node.value
    return (
        stands_for.get(node.id, frozenset()) | found
        if isinstance(node, ast.Name)
        else frozenset(found)
    )


def the_module_itself(node: ast.expr) -> ast.expr:
    """`model` of `model.eval().half()`: methods of a module that give the module back."""
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _GIVE_THE_MODULE
    ):
        node = node.func.value
    return node


def moved_by_the_class(tree: Tree, cls: ast.ClassDef) -> set[str]:
    """Names that an override of `to`, `_apply` and the like mentions."""
    found: set[str] = set()
    for statement in cls.body:
        if isinstance(statement, SCOPES) and statement.name in _MOVERS:
            found.update(each.attr for each in tree.nodes(ast.Attribute, statement))
            for each in tree.nodes(ast.Constant, statement):
                if isinstance(each.value, str):
                    found.add(each.value)
            if "__dict__" in found or any(
                isinstance(each.func, ast.Name) and each.func.id in ("vars", "setattr")
                for each in tree.nodes(ast.Call, statement)
            ):
                found.update(each.attr for each in tree.nodes(ast.Attribute, cls))
    return found


def may_be_moved(tree: Tree, cls: ast.ClassDef, name: str) -> bool:
    """A method of the class moves it, by its name or with everything else that is kept."""
    return name in tree.once(moved_by_the_class, cls) or tree.once(_sets_any_name, cls)


def _sets_any_name(tree: Tree, cls: ast.ClassDef) -> bool:
    """`setattr(self, name, value)` and `self.__dict__` may stand for every attribute."""
    by_name = any(
        isinstance(each.func, ast.Name) and each.func.id in ("setattr", "vars")
        for each in tree.nodes(ast.Call, cls)
    )
    return by_name or any(each.attr == "__dict__" for each in tree.nodes(ast.Attribute, cls))
