"""Functions that move what they are given themselves."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.moves import TO_DEVICE
from tensortrail.rules.shared.objects import receiver
from tensortrail.rules.view import Module


def moves_its_arguments(module: Module, call: ast.Call) -> bool:
    """The called function, or method of the class around, moves one of its arguments."""
    return any(module.about(each, _moves_what_it_is_given) for each in _names(module, call))


def _names(module: Module, call: ast.Call) -> list[str]:
    """What it may be called: a method is of the class or of one of its bases."""
    name, cls = module.qualified(call.func), module.class_of(call)
    facts = module.class_facts(cls) if cls is not None and name.startswith("self.") else None
    owners = (facts.name, *facts.bases) if facts is not None else ()
    return [f"{each}.{name.removeprefix('self.')}" for each in owners] or [name]


def _moves_what_it_is_given(module: Module, function: ast.AST) -> bool:
    moved = map(receiver, module.calls(*TO_DEVICE, inside=function))
    given = {each.arg for each in module.nodes(ast.arg, function)}
    return any(isinstance(each, ast.Name) and each.id in given for each in moved)
