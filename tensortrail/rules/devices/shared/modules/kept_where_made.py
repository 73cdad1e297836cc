"""Plain classes that make modules of their own and never move them."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.moves import MAY_PLACE
from tensortrail.rules.shared.objects import receiver
from tensortrail.rules.view import FunctionNode, Module
from tensortrail.rules.words import Kind


def keeps_where_made(module: Module, function: FunctionNode) -> bool:
    """`self.net = Net(8)` in a class that is no module, of which neither a method nor the rest of
    the file moves anything."""
    cls = module.class_of(function)
    facts = module.class_facts(cls) if cls is not None else None
    if cls is None or facts is None or facts.is_module:
        return False
    if any(module.class_facts(module.qualified(each)) is None for each in cls.bases):
        return False  # it may be a module
    made = module.once(_modules_made, cls)
    if not made or _may_place(module, cls) or _is_moved_from_outside(module, made):
        return False
    return not any(module.about(each, _may_place) for each in facts.bases)


def _modules_made(module: Module, cls: ast.ClassDef) -> frozenset[str]:
    return frozenset(
        target.attr
        for each in module.nodes(ast.Assign, cls)
        for target in each.targets
        if isinstance(target, ast.Attribute)
        and isinstance(each.value, ast.Call)
        and module.kind_of(each.value) is Kind.MODULE
    )


def _is_moved_from_outside(module: Module, made: frozenset[str]) -> bool:
    """`agent.net.cuda()`."""
    owners = (receiver(call) for call in module.calls(*MAY_PLACE))
    return any(isinstance(each, ast.Attribute) and each.attr in made for each in owners)


def _may_place(module: Module, cls: ast.AST) -> bool:
    return any(True for _ in module.calls(*MAY_PLACE, inside=cls))
