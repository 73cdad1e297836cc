"""Optimizers, and models that take the place of the ones they were made of."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.shared.moves import GIVES_ITSELF
from tensortrail.rules.shared.objects import called, is_self, receiver
from tensortrail.rules.shared.optimizers import (
    is_asked_of,
    is_optimizer,
    model_behind,
    trains_on,
)
from tensortrail.rules.view import FunctionNode, Module
from tensortrail.rules.words import Kind

_LOADS = frozenset({"torch.load", "torch.hub.load", "torch.jit.load"})


class Optimized(NamedTuple):
    optimizer: ast.Call
    model: str
    replaced: ast.Assign
    """Where another model takes its name."""
    surely: bool
    """The same function makes the steps."""


def optimized_here(module: Module, assign: ast.Assign) -> Iterator[Optimized]:
    """The function makes an optimizer, replaces its model, and trains on."""
    made, model = _optimizer(module, assign)
    if made is None or len(assign.targets) != 1:
        return
    function = module.function_of(assign)
    for new in module.later(assign, ast.Assign):
        if not _replaces(module, new, model) or module.function_of(new) is not function:
            continue
        runs = any(module.text(each.func) == model for each in module.later(new, ast.Call))
        if runs and trains_on(module, assign, new):
            yield Optimized(made, model, new, surely=True)


def optimized_by_class(module: Module, assign: ast.Assign) -> Iterator[Optimized]:
    """`__init__` makes the optimizer of an attribute, and another method replaces that one."""
    made, model = _optimizer(module, assign)
    start, cls = module.function_of(assign), module.class_of(assign)
    kept = assign.targets[0]
    if made is None or cls is None or start is None or start.name != "__init__":
        return
    if not isinstance(kept, ast.Attribute) or not is_self(kept.value):
        return
    if not model.startswith("self.") or not _is_stored_once(module, cls, kept):
        return
    if not any(
        is_asked_of(module, each, module.text(kept)) for each in module.calls("step", inside=cls)
    ):
        return
    for new in module.nodes(ast.Assign, cls):
        method = module.function_of(new)
        if method is None or method is start or not _replaces(module, new, model):
            continue
        if not _runs_before(module, method, start, assign):
            yield Optimized(made, model, new, surely=False)


def _optimizer(module: Module, assign: ast.Assign) -> tuple[ast.Call | None, str]:
    made = assign.value
    if not isinstance(made, ast.Call) or not is_optimizer(module, made):
        return None, ""
    model = model_behind(module, made)
    return (made, model) if model else (None, "")


def _replaces(module: Module, assign: ast.Assign, model: str) -> bool:
    """`model = Net(...)`: a model that is not made around the one before."""
    if [module.text(each) for each in assign.targets] != [model]:
        return False
    value = assign.value
    while isinstance(value, ast.Call) and called(value) in GIVES_ITSELF:
        inner = receiver(value)
        if inner is None:
            return False
        value = inner
    if not isinstance(value, ast.Call):
        return False
    name = module.qualified(value.func)
    if name == "copy.deepcopy":
        return [module.text(each) for each in value.args] == [model]
    if _mentions(module, value, model):
        return False
    loads = name in _LOADS or called(value) == "from_pretrained"
    return loads or _makes_a_module(module, value)


def _makes_a_module(module: Module, call: ast.Call) -> bool:
    """The constructor of a module that has parameters of its own."""
    facts = module.class_facts(module.qualified(call.func))
    return facts is not None and facts.is_module and module.kind_of(call) is Kind.MODULE


def _mentions(module: Module, value: ast.AST, model: str) -> bool:
    root = model.rpartition(".")[2]
    names = {each.id for each in module.nodes(ast.Name, value)}
    return root in names or root in {each.attr for each in module.nodes(ast.Attribute, value)}


def _is_stored_once(module: Module, cls: ast.ClassDef, kept: ast.Attribute) -> bool:
    """By the class, and by nothing else that has the object."""
    stores = [each for each in module.members(kept.attr) if isinstance(each.ctx, ast.Store)]
    own = [each for each in stores if module.class_of(each) is cls]
    return own == [kept] and all(is_self(each.value) for each in stores)


def _runs_before(
    module: Module, method: FunctionNode, start: FunctionNode, made: ast.Assign
) -> bool:
    """`__init__` calls the method, and only before it makes the optimizer."""
    calls = list(module.calls(method.name, inside=start))
    begins = made.lineno, made.col_offset
    return bool(calls) and all((each.lineno, each.col_offset) < begins for each in calls)
