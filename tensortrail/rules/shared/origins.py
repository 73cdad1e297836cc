"""The expression behind a name."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.objects import is_self
from tensortrail.rules.view import Module


def behind(module: Module, node: ast.expr) -> ast.expr:
    """What a name was assigned from, if that is one expression; any other node itself."""
    if isinstance(node, ast.NamedExpr):
        return behind(module, node.value)
    origins = module.value_of(node).origins if isinstance(node, ast.Name) else ()
    return origins[0] if len(origins) == 1 and origins[0] is not node else node


def kept_behind(module: Module, node: ast.expr) -> ast.expr:
    """The same, and what the class binds an attribute of `self` to, if it does so once."""
    if not isinstance(node, ast.Attribute) or not is_self(node.value):
        return behind(module, node)
    members = module.members(node.attr, module.class_of(node))
    stores = [each for each in members if isinstance(each.ctx, ast.Store)]
    stored = module.parent(stores[0]) if len(stores) == 1 else None
    return behind(module, stored.value) if isinstance(stored, ast.Assign) else node


def text_behind(module: Module, node: ast.expr) -> str:
    """The text of the node, and of all that the names in it were assigned from."""
    names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
    origins = [origin for each in names for origin in module.value_of(each).origins]
    return " ".join(module.text(each) for each in (node, *origins))


def decided_by(module: Module, node: ast.expr) -> str:
    """The same, with the conditions under which its names were bound: `found = False` and then
    `if model.hf_device_map: found = True` is about the map."""
    names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
    origins = [origin for each in names for origin in module.value_of(each).origins]
    asked = [guard.test for each in origins for guard in module.guards_of(each)]
    return " ".join((text_behind(module, node), *(module.text(each) for each in asked)))


def names_behind(module: Module, node: ast.expr, depth: int = 2) -> set[str]:
    """The names in an expression, and in those that they were bound from."""
    names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
    found = {each.id for each in names}
    for each in names if depth else ():
        for origin in module.value_of(each).origins:
            found |= names_behind(module, origin, depth - 1)
    return found
