"""Models that are made on meta, and the classes that they are of."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.classes import classes_named
from tensortrail.rules.shared.objects import called, keyword, receiver
from tensortrail.rules.view import Module


def meta_context(module: Module, made: ast.Assign) -> ast.expr | None:
    """The `with` under which all that is made lies on meta."""
    for context in module.contexts_of(made):
        if not isinstance(context, ast.Call):
            continue
        name = module.qualified(context.func)
        first = context.args[0] if context.args else keyword(context, "device")
        on_meta = first is not None and module.value_of(first).constant == "meta"
        if name.rpartition(".")[2] == "init_empty_weights":
            return context
        if on_meta and name in ("torch.device", "accelerate.init_on_device"):
            return context
    return None


def class_emptied(module: Module, emptied: ast.Call) -> tuple[ast.ClassDef, ast.Assign] | None:
    """The class of this file whose object was made on meta and gets memory by `to_empty`, if no
    call of its own stands in between; and where it was made."""
    owner = receiver(emptied)
    name = module.text(owner) if owner is not None else ""
    for before in module.earlier(emptied, ast.Assign):
        if name in map(module.text, before.targets):
            made = before.value
            if not isinstance(made, ast.Call) or meta_context(module, before) is None:
                return None
            cls = next(iter(classes_named(module, called(made))), None)
            return (cls, before) if cls is not None else None
    return None


def is_written_after(module: Module, emptied: ast.Call, buffer: ast.Call) -> bool:
    """`net.rotary.rates.copy_(...)`, `net.rotary.rates = ...` behind `to_empty`, of the buffer that
    `register_buffer("rates", ...)` made."""
    name = module.value_of(buffer.args[0]).constant
    return any(
        each.attr == name and (isinstance(each.ctx, ast.Store) or _is_filled(module, each))
        for each in module.later(emptied, ast.Attribute)
    )


def _is_filled(module: Module, buffer: ast.Attribute) -> bool:
    """By a method whose name ends as those do that write, or a part of it is assigned."""
    up = module.parent(buffer)
    if isinstance(up, ast.Attribute):
        return up.attr.endswith("_") or up.attr == "data"
    return isinstance(up, ast.Subscript) and isinstance(up.ctx, ast.Store)
