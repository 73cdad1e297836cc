"""Whether a tensor in a plain attribute is made where the module already is."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tensortrail.rules import Module
from tensortrail.rules.devices.shared.modules.attribute_reads import (
    is_an_index,
    is_counted,
)
from tensortrail.rules.devices.shared.modules.kept_plainly import held_by
from tensortrail.rules.places import Where
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.objects import called


def is_unsure(module: Module, store: ast.Attribute) -> bool:
    """It may have no dimension, or come from what is not known."""
    held = held_by(module, store)
    return held is None or held.may_be_scalar or any(e.where is Where.LOCAL for e in held.places)


def is_on_a_gpu(module: Module, store: ast.Attribute) -> bool:
    """It was put on one where it was made, and does not stay on the CPU."""
    held = held_by(module, store)
    literal = held is not None and any(each.where is Where.LITERAL for each in held.places)
    return literal and held is not None and all(each.subject != "cpu" for each in held.places)


def may_follow(module: Module, cls: ast.ClassDef, name: str, kept: Sequence[ast.Attribute]) -> bool:
    """It is made where the parameters already are, after the module was built; or it is only
    handed to functions of other files, which may move it or index with it."""
    if all(_is_made_beside(module, each) for each in kept):
        return True
    makers = {module.function_of(each) for each in kept}
    return all(
        _is_handed_away(module, node) or is_an_index(module, node) or is_counted(module, node)
        for node in module.members(name, cls)
        if isinstance(node.ctx, ast.Load) and module.function_of(node) not in makers
    )


def _is_made_beside(module: Module, store: ast.Attribute) -> bool:
    function, held = module.function_of(store), held_by(module, store)
    later = function is not None and function.name != "__init__"
    beside = held is not None and all(
        each.where in (Where.DEVICE, Where.SELF) for each in held.places
    )
    return later and beside


def _is_handed_away(module: Module, node: ast.Attribute) -> bool:
    above = module.parent(node)
    if isinstance(above, ast.Assign):  # `output["ids"] = self.ids`
        return all(isinstance(each, ast.Subscript) for each in above.targets)
    call = module.parent(above) if isinstance(above, ast.keyword) else above
    if not isinstance(call, ast.Call) or call.func is node:
        return False
    own = {each.name for each in functions(module)} | {"self"}
    name = module.qualified(call.func)
    return not name.startswith("torch.") and own.isdisjoint({*name.split("."), called(call)})


def is_made_here(module: Module, store: ast.Attribute) -> bool:
    """On the default device on every path: a move of the module is to change that."""
    held = held_by(module, store)
    return (
        held is not None
        and bool(held.places)
        and all(each.where is Where.DEFAULT for each in held.places)
    )
