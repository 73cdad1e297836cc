"""Methods that answer with what the object keeps, where the same method of a sibling asks for a
device and puts it there; and devices that an object keeps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.devices.shared.calls.accepted import is_read
from tensortrail.rules.shared.functions import parameters
from tensortrail.rules.shared.objects import is_self
from tensortrail.rules.view import FunctionNode, Module

_PLAIN = frozenset({"object", "torch.nn.Module", "abc.ABC"})


def answered_as_kept(
    module: Module, function: FunctionNode, name: str
) -> Iterator[tuple[ast.expr, FunctionNode]]:
    """What is given back unmoved, and the method of a class with the same base that reads it."""
    siblings = list(_siblings(module, function, name))
    readers = [each for each in siblings if is_read(module, each, name)]
    if not readers or len(readers) < len(siblings):
        return
    for each in module.nodes(ast.Return, function):
        if each.value is not None and _is_kept(module, each.value):
            yield each.value, readers[0]


def _siblings(module: Module, function: FunctionNode, name: str) -> Iterator[FunctionNode]:
    """The same method of other classes that share a base with this one, if it does something."""
    own = _bases(module, module.parent(function))
    for cls in module.nodes(ast.ClassDef) if own else ():
        if cls is module.parent(function) or own.isdisjoint(_bases(module, cls)):
            continue
        for method in cls.body:
            if not isinstance(method, ast.FunctionDef) or method.name != function.name:
                continue
            if _is_written(method) and name in {each.arg for each in parameters(method)}:
                yield method


def _bases(module: Module, cls: ast.AST | None) -> set[str]:
    if not isinstance(cls, ast.ClassDef):
        return set()
    return {module.qualified(each) for each in cls.bases} - _PLAIN - {""}


def _is_written(method: ast.FunctionDef) -> bool:
    """It is no abstract method."""
    return not method.decorator_list and any(isinstance(e, ast.Return) for e in ast.walk(method))


def _is_kept(module: Module, value: ast.expr) -> bool:
    """`self._args`, or several of them."""
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    return bool(parts) and all(
        isinstance(each, ast.Attribute) and module.text(each.value) == "self" for each in parts
    )


def other_devices_kept(module: Module, function: FunctionNode) -> Iterator[ast.Assign]:
    """`self.where = next(model.parameters()).device`: the object keeps this device."""
    for statement in module.nodes(ast.Assign, function):
        value, target = statement.value, statement.targets[0]
        own = isinstance(target, ast.Attribute) and is_self(target.value)
        asked = isinstance(value, ast.Attribute) and value.attr == "device"
        made = isinstance(value, ast.Call) and module.qualified(value.func) == "torch.device"
        if own and (asked or made):
            yield statement
