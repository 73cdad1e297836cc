"""Plain attributes that become buffers."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tensortrail.findings import Fix, Safety
from tensortrail.rules.devices.shared.modules.plain_attributes import stores
from tensortrail.rules.places import What
from tensortrail.rules.shared.buffers import registration
from tensortrail.rules.view import FunctionNode, Module


def is_registered(module: Module, function: FunctionNode, name: str) -> bool:
    """A class or its base may have a buffer of that name, and a tensor that is assigned to it
    becomes it."""
    cls = module.class_of(function)
    facts = module.class_facts(cls) if cls is not None else None
    return facts is not None and (name in facts.registered or facts.registers_others)


def _is_box(module: Module, function: FunctionNode, store: ast.Attribute) -> bool:
    """A list, tuple or mapping is no buffer."""
    held = module.places(function).seen.get(store)
    return held is not None and held.what is What.BOX


def as_buffers(module: Module, at: ast.AST, names: Sequence[str]) -> Fix | None:
    function = module.function_of(at)
    if function is None or not isinstance(at, ast.Assign):
        return None
    stored = [stores(module, function, each) for each in names]
    if any(len(each) != 1 or _is_box(module, function, each[0]) for each in stored):
        return None
    text = registration(function, at, names, module.text)
    what = "make it a buffer" if len(names) == 1 else "make them buffers"
    return module.fix(what, Safety.UNSAFE, module.replace(at, text)) if text else None
