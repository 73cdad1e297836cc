"""Classes of modules that make no numbers of their own."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.tensor_origin import is_factory
from tensortrail.rules.view import Module


def takes_its_weights(module: Module, name: str) -> bool:
    """The class is of this file, and it and those of the file that it makes take all their weights
    from somebody: who has them knows where they are."""
    classes = {each.name: each for each in module.nodes(ast.ClassDef)}
    todo, seen = [name], set[str]()
    while todo:
        name = todo.pop()
        if name in seen or name not in classes:
            continue
        seen.add(name)
        for call in module.nodes(ast.Call, classes[name]):
            todo.append(module.text(call.func))
            if _is_fresh(module, call):
                return False
    return bool(seen)


def _is_fresh(module: Module, call: ast.Call) -> bool:
    """A layer of torch, or numbers that torch makes."""
    owner, _, last = module.qualified(call.func).rpartition(".")
    layer = owner == "torch.nn" and last[:1].isupper() and last != "Parameter"
    return layer or is_factory(module, call)
