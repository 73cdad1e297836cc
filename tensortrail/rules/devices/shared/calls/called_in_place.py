"""Parameters that a function takes because others take them: it is called in their place."""

from __future__ import annotations

import ast
import os

from tensortrail.rules.devices.shared.calls.accepted import is_read
from tensortrail.rules.devices.shared.written_for.beforehand import is_beforehand
from tensortrail.rules.shared.functions import functions, parameters
from tensortrail.rules.shared.objects import last_name
from tensortrail.rules.view import FunctionNode, Module

_PLAIN_BASES = frozenset({"object", "torch.nn.Module"})
_PLAIN_DECORATORS = frozenset(
    "staticmethod classmethod no_grad inference_mode cache lru_cache autocast torch_compile".split()
)


def _is_registered(function: FunctionNode) -> bool:
    """A decorator may call it in place of others, or wants a certain signature."""
    called = (each.func if isinstance(each, ast.Call) else each for each in function.decorator_list)
    return not {last_name(each) for each in called} <= _PLAIN_DECORATORS


def _may_override(module: Module, function: FunctionNode) -> bool:
    """It may be a method of one of its bases: a base has it, or is not known."""
    cls = module.parent(function)
    facts = module.class_facts(cls) if isinstance(cls, ast.ClassDef) else None
    if facts is None or function.name == "__init__":
        return False
    bases = [module.class_facts(each) for each in set(facts.bases) - _PLAIN_BASES]
    known = facts.complete or not set(facts.bases) - _PLAIN_BASES
    return not known or any(each is None or function.name in each.methods for each in bases)


def is_called_early_or_by_others(module: Module, function: FunctionNode, _: str) -> bool:
    """A variable is its own choice: no caller and no signature asks for it."""
    return is_beforehand(module, function) or _is_registered(function)


def stands_in_for_others(module: Module, function: FunctionNode, name: str) -> bool:
    """The parameter may not be its own choice: the function is called in place of others."""
    if is_beforehand(module, function) or os.path.basename(module.path).startswith("modular_"):
        return True  # what `super()` stands for is written out in the file that is made of it
    if function.name == "__init__" and not _is_registered(function):
        return False
    if _is_registered(function) or _is_a_value(module, function.name):
        return True
    namesakes = [
        each
        for each in functions(module)
        if each.name == function.name
        and each is not function
        and name in {given.arg for given in parameters(each)}
    ]
    if namesakes:
        return not all(is_read(module, each, name) for each in namesakes)
    return _may_override(module, function)


def _is_a_value(module: Module, name: str) -> bool:
    """The function is passed on or stored."""
    for kind in (ast.Name, ast.Attribute):
        for node in module.nodes(kind):
            named = getattr(node, "id", getattr(node, "attr", "")) == name
            above = module.parent(node)
            called = isinstance(above, ast.Call) and above.func is node
            if named and not called and isinstance(getattr(node, "ctx", None), ast.Load):
                return True
    return False
