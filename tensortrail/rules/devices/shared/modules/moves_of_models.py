"""Moves of a model that a variable or an attribute holds, and code that may move it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.functions import outermost_function
from tensortrail.rules.shared.moves import GIVES_ITSELF, MAY_PLACE
from tensortrail.rules.shared.objects import attributes_in, called, receiver
from tensortrail.rules.view import Module

_HARMLESS = frozenset("zip deepcopy print len id isinstance type list enumerate".split())
_BY_NAME = ("getattr", "vars", "setattr")


def scope_of(module: Module, node: ast.AST, name: str) -> ast.AST | None:
    """The function around for a variable; for `self.target` the class, which is no module."""
    if not name.startswith("self."):
        return (outermost_function(module, node) or module.top) if name.isidentifier() else None
    cls = module.class_of(node)
    if cls is None or name.count(".") != 1 or cls.bases:
        return None
    return cls


def only_assignment(module: Module, scope: ast.AST, name: str) -> ast.Assign | None:
    stores = [
        each
        for kind in (ast.Name, ast.Attribute)
        for each in module.nodes(kind, scope)
        if isinstance(each.ctx, ast.Store) and module.text(each) == name  # type: ignore[attr-defined]
    ]
    statement = module.parent(stores[0]) if len(stores) == 1 else None
    return statement if isinstance(statement, ast.Assign) else None


def moves_of(module: Module, calls: Iterator[ast.Call], model: str) -> Iterator[ast.Call]:
    for call in calls:
        owner = receiver(call)
        if owner is not None and module.text(bare(owner)) == model:
            yield call


def bare(node: ast.expr) -> ast.expr:
    """`Net()` of `Net().eval().to(device)`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr not in GIVES_ITSELF:
            break
        node = node.func.value
    return node


def may_be_moved(module: Module, scope: ast.AST, name: str, combined: ast.Call) -> bool:
    """A move of it, or code that it is passed on to and that may move it."""
    if any(module.calls(*_BY_NAME, inside=scope)) and name.startswith("self."):
        return True
    attr = name.rpartition(".")[2]
    for call in module.calls(*MAY_PLACE):
        owner = receiver(call)
        if owner is not None and attr in (each.attr for each in attributes_in(owner)):
            return True
    kind = ast.Attribute if name.startswith("self.") else ast.Name
    for node in module.nodes(kind, scope):
        is_read = isinstance(node.ctx, ast.Load)  # type: ignore[attr-defined]
        if is_read and module.text(node) == name and _is_passed_on(module, node, combined):
            return True
    return False


def _is_passed_on(module: Module, node: ast.AST, combined: ast.Call, depth: int = 2) -> bool:
    above = module.parent(node)
    if isinstance(above, ast.Attribute):
        chain = [above, *module.ancestors(above)]
        return any(isinstance(each, ast.Attribute) and each.attr in MAY_PLACE for each in chain)
    if isinstance(above, ast.keyword):
        above = module.parent(above)
    if isinstance(above, ast.Assign) and isinstance(above.targets[0], ast.Name):
        others = module.uses(above.targets[0].id, inside=module.function_of(node))
        reads = (each for each in others if isinstance(each.ctx, ast.Load))
        return not depth or any(_is_passed_on(module, each, combined, depth - 1) for each in reads)
    if isinstance(above, ast.Call):
        same = called(above) == called(combined)
        return not (above.func is node or same or called(above) in _HARMLESS)
    if isinstance(above, ast.Tuple):
        return not isinstance(module.parent(above), ast.Return)
    return not isinstance(above, (ast.Return, ast.Compare, ast.Expr))
