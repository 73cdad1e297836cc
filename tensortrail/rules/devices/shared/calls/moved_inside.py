"""Functions that move what they are given themselves."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.functions import called_here
from tensortrail.rules.shared.moves import TO_DEVICE
from tensortrail.rules.shared.objects import receiver
from tensortrail.rules.view import Module


def moves_its_arguments(module: Module, call: ast.Call) -> bool:
    """The called function, or method of the class around, moves one of its arguments, or hands it
    on to one of its file that does."""
    here = called_here(module, call)
    if here is not None:
        return _moves_what_it_is_given(module, here)
    return any(module.about(each, _moves_what_it_is_given) for each in _names(module, call))


def _names(module: Module, call: ast.Call) -> list[str]:
    """What it may be called: a method is of the class or of one of its bases."""
    name, cls = module.qualified(call.func), module.class_of(call)
    facts = module.class_facts(cls) if cls is not None and name.startswith("self.") else None
    owners = (facts.name, *facts.bases) if facts is not None else ()
    return [f"{each}.{name.removeprefix('self.')}" for each in owners] or [name]


def _moves_what_it_is_given(module: Module, function: ast.AST) -> bool:
    given = {each.arg for each in module.nodes(ast.arg, function)}
    handed_on = (
        called_here(module, each)
        for each in module.nodes(ast.Call, function)
        if any(isinstance(part, ast.Name) and part.id in given for part in each.args)
    )
    inner = (each for each in handed_on if each is not None and each is not function)
    return _moves_one(module, function) or any(_moves_one(module, each) for each in inner)


def _moves_one(module: Module, function: ast.AST) -> bool:
    moved = map(receiver, module.calls(*TO_DEVICE, inside=function))
    given = {each.arg for each in module.nodes(ast.arg, function)}
    return any(isinstance(each, ast.Name) and each.id in given for each in moved)
