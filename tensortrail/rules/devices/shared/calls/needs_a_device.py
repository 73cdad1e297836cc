"""Whether a call decides where something of torch is, or of which type."""

from __future__ import annotations

import ast

from tensortrail.rules import Module
from tensortrail.rules.shared.objects import receiver
from tensortrail.rules.view import FunctionNode

_KEYWORDS = frozenset({"device", "dtype", "map_location"})


def is_needed(module: Module, function: FunctionNode, name: str) -> bool:
    return any(needs_one(module, each) for each in module.uses(name, function))


def needs_one(module: Module, use: ast.Name) -> bool:
    """It decides where something of torch's is, or of which type."""
    above = module.parent(use)
    if isinstance(above, ast.keyword):
        call = module.parent(above)
        of_torch = isinstance(call, ast.Call) and module.qualified(call).startswith("torch.")
        return above.arg in _KEYWORDS and (of_torch or _moves(call))
    if not isinstance(above, ast.Call) or use not in above.args[:1]:
        return False
    return _moves(above) and not _has_nothing_to_move(module, above)


def _moves(call: ast.AST | None) -> bool:
    func = call.func if isinstance(call, ast.Call) else None
    return isinstance(func, ast.Attribute) and func.attr == "to"


def _has_nothing_to_move(module: Module, move: ast.Call) -> bool:
    """A module of a class that registers no parameter, buffer or module."""
    owner = receiver(move)
    cls = module.value_of(owner).cls if owner is not None else ""
    facts = module.class_facts(cls) if cls else None
    if facts is None or not facts.is_module or not facts.complete or facts.registered:
        return False
    return module.about(cls, _keeps_modules) is False


def _keeps_modules(module: Module, cls: ast.AST) -> bool:
    """`self.layer = nn.Linear(...)` in the class."""
    made = (each.value for each in module.nodes(ast.Assign, cls))
    return any(module.qualified(each).startswith("torch.nn.") for each in made)
