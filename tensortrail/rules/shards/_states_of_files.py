"""The states that a source writes into a checkpoint, and what it takes back out of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.shared.functions import called_here, own_returns
from tensortrail.rules.shared.objects import called, is_name, receiver
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import Module

_DEEPEST = 3
"""Functions that call each other to make what is saved."""


class SavedStates(NamedTuple):
    call: ast.Call
    path: str
    owners: dict[str, str]
    """By key: whose `state_dict()` it is; "" of what is no state."""


class Loaded(NamedTuple):
    call: ast.Call
    path: str
    keys: frozenset[str]
    """Every key that is asked for, in whatever way."""
    restored: frozenset[str]
    """Those whose entry a `load_state_dict` takes."""


def saved_states(module: Module) -> Iterator[SavedStates]:
    for call in module.calls("torch.save"):
        what, path = module.argument(call, 0, "obj"), module.argument(call, 1, "f")
        if what is not None and path is not None:
            owners = {key: _owner(module, value) for key, value in _entries(module, what)}
            yield SavedStates(call, module.text(behind(module, path)), owners)


def loaded_states(module: Module) -> Iterator[Loaded]:
    """Each `torch.load` into a variable of which every use names a key."""
    for call in module.calls("torch.load"):
        assign, path = module.parent(call), module.argument(call, 0, "f")
        target = assign.targets[0] if isinstance(assign, ast.Assign) else None
        if path is None or not isinstance(target, ast.Name):
            continue
        uses = [
            each for each in module.uses(target.id, module.function_of(call) or module.top)
            if isinstance(each.ctx, ast.Load)
        ]  # fmt: skip
        asked = {each: _asked(module, each) for each in uses}
        if all(asked.values()):
            taken = set(_taken(module, call))
            restored = frozenset(key for each, key in asked.items() if each in taken)
            shown = module.text(behind(module, path))
            yield Loaded(call, shown, frozenset(asked.values()), restored)


def _entries(
    module: Module, what: ast.expr, depth: int = _DEEPEST
) -> Iterator[tuple[str, ast.expr]]:
    made = behind(module, what)
    helper = called_here(module, made) if isinstance(made, ast.Call) and depth else None
    returned = own_returns(module, helper) if helper is not None else []
    if len(returned) == 1 and returned[0].value is not None:
        yield from _entries(module, returned[0].value, depth - 1)
    elif isinstance(made, ast.Dict):
        for key, value in zip(made.keys, made.values, strict=True):
            if isinstance(key, ast.Constant):
                yield str(key.value), value
    elif isinstance(made, ast.Call) and called(made) == "dict":
        yield from ((each.arg, each.value) for each in made.keywords if each.arg is not None)
    if isinstance(what, ast.Name):
        yield from _stored(module, what)


def _stored(module: Module, name: ast.Name) -> Iterator[tuple[str, ast.expr]]:
    """`content["optimizer"] = optimizer.state_dict()`"""
    for item in module.nodes(ast.Subscript, module.function_of(name)):
        assign = module.parent(item)
        is_key = isinstance(item.slice, ast.Constant) and is_name(item.value, name.id)
        if is_key and isinstance(assign, ast.Assign) and isinstance(item.ctx, ast.Store):
            yield ast.literal_eval(item.slice), assign.value


def _owner(module: Module, value: ast.expr) -> str:
    made = value.body if isinstance(value, ast.IfExp) else value
    owner = receiver(made) if isinstance(made, ast.Call) else None
    is_state = isinstance(made, ast.Call) and called(made) == "state_dict"
    return module.text(owner) if owner is not None and is_state else ""


def _asked(module: Module, use: ast.Name) -> str:
    """The key in `state["model"]`, `state.get("model")`, `state.pop("model")`, `"model" in state`;
    "" of another use."""
    above = module.parent(use)
    key: ast.expr | None = None
    match above:
        case ast.Subscript(value=value, slice=key) if value is use:
            pass
        case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()]):
            pass
        case ast.Attribute(attr="get" | "pop"):
            call = module.parent(above)
            key = call.args[0] if isinstance(call, ast.Call) and call.args else None
    text = module.value_of(key).constant if key is not None else None
    return text if isinstance(text, str) else ""


def _taken(module: Module, load: ast.Call) -> Iterator[ast.Name]:
    """Variables in what a `load_state_dict` of the function is given."""
    for call in module.calls("load_state_dict", inside=module.function_of(load)):
        for each in call.args[:1]:
            yield from module.nodes(ast.Name, behind(module, each))
