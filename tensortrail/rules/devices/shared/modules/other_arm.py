"""Attributes that one arm of a condition registers with the module, and the other does not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.objects import called
from tensortrail.rules.view import Module

_REGISTERED = ("Parameter", "Buffer", "register_buffer", "register_parameter")


def is_the_other_arm(module: Module, cls: ast.ClassDef, name: str, store: ast.Attribute) -> bool:
    """Where one arm of a condition makes it a parameter or a buffer, this one does not."""
    value = getattr(module.statement_of(store), "value", None)
    if isinstance(value, ast.Call) and called(value) in _REGISTERED:
        return False
    return any(
        _are_arms_of_one(module, store, each)
        for each in _registrations(module, cls, name)
        if module.function_of(each) is module.function_of(store)
    )


def _registrations(module: Module, cls: ast.ClassDef, name: str) -> Iterator[ast.AST]:
    for call in module.calls(*_REGISTERED, inside=cls):
        first = call.args[0] if call.args else None
        stored = module.statement_of(call)
        targets = stored.targets if isinstance(stored, ast.Assign) else []
        by_name = isinstance(first, ast.Constant) and first.value == name
        if by_name or any(module.text(each) == f"self.{name}" for each in targets):
            yield call


def _are_arms_of_one(module: Module, one: ast.AST, other: ast.AST) -> bool:
    """They stand in different arms of one `if`."""
    around = [one, *module.ancestors(one)]
    beside = [other, *module.ancestors(other)]
    shared = next((each for each in around if each in beside), None)
    if not isinstance(shared, ast.If):
        return False
    arms = (shared.body, shared.orelse)
    return any(
        any(each in arm for each in around) and not any(each in arm for each in beside)
        for arm in arms
    )
