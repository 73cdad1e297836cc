"""`to` methods that go on with the device that their object had before."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.devices.shared.named.devices_said import devices_said
from tensortrail.rules.shared.functions import parameters
from tensortrail.rules.shared.moves import MOVES
from tensortrail.rules.shared.objects import is_before, is_name, is_self
from tensortrail.rules.view import Module


class Stale(NamedTuple):
    """Where the old device is used, or where the parts get the new one."""

    node: ast.AST
    function: ast.FunctionDef
    attribute: str
    given: str
    stored: ast.AST | None
    """Where the new one is stored, too late."""


def stale(module: Module, cls: ast.ClassDef) -> Iterator[Stale]:
    for function in cls.body:
        given = _given(function) if isinstance(function, ast.FunctionDef) else None
        if isinstance(function, ast.FunctionDef) and given is not None:
            stores = _stores(module, function, given)
            for attribute, store in stores.items():
                used = _used_before(module, function, attribute, given, store)
                if used is not None:
                    yield Stale(used, function, attribute, given, store)
            if not stores:
                yield from _forgotten(module, cls, function, given)


def _given(function: ast.FunctionDef) -> str | None:
    """The device of `def to(self, device)`."""
    names = [each.arg for each in parameters(function)][1:]
    return names[0] if function.name in MOVES and names else None


def _stores(module: Module, function: ast.FunctionDef, given: str) -> dict[str, ast.Assign]:
    """`self.device = device`, by the attribute."""
    return {
        target.attr: each
        for each in module.nodes(ast.Assign, function)
        for target in each.targets
        if isinstance(target, ast.Attribute) and is_self(target.value)
        if is_name(_made_of(module, each.value), given)
    }


def _made_of(module: Module, node: ast.expr) -> ast.expr:
    """`device` of `torch.device(device)`."""
    made = isinstance(node, ast.Call) and module.qualified(node.func) == "torch.device"
    return node.args[0] if made and isinstance(node, ast.Call) and node.args else node


def _used_before(
    module: Module, function: ast.FunctionDef, attribute: str, given: str, store: ast.Assign
) -> ast.Attribute | None:
    """The old device is said in a statement that knows nothing of the new one."""
    said = {device for _, device in devices_said(module, function)}
    for node in module.nodes(ast.Attribute, function):
        own = node.attr == attribute and is_self(node.value) and isinstance(node.ctx, ast.Load)
        if not own or not is_before(node, store) or module.guards_of(node):
            continue
        names = (each for each in ast.walk(module.statement_of(node)) if isinstance(each, ast.Name))
        if (node in said or _is_an_option(module, node)) and given not in {e.id for e in names}:
            return node
    return None


def _is_an_option(module: Module, node: ast.expr) -> bool:
    """`{"device": self.device}`"""
    above = module.parent(node)
    if not isinstance(above, ast.Dict):
        return False
    key = above.keys[above.values.index(node)]
    return isinstance(key, ast.Constant) and key.value == "device"


def _forgotten(
    module: Module, cls: ast.ClassDef, function: ast.FunctionDef, given: str
) -> Iterator[Stale]:
    """The parts get the new device, and the attribute from which they got the old one does not."""
    parts = [
        target
        for each in module.nodes(ast.Assign, function)
        for target in each.targets
        if isinstance(target, ast.Attribute) and is_name(each.value, given)
    ]
    for name in dict.fromkeys(each.attr for each in parts):
        own = [each for each in module.members(name, cls) if is_self(each.value)]
        stored = [each for each in own if isinstance(each.ctx, ast.Store)]
        said = {device for _, device in devices_said(module, cls)}
        if len(stored) == 1 and any(each in said for each in own):
            first = next(each for each in parts if each.attr == name)
            yield Stale(module.statement_of(first), function, name, given, None)
