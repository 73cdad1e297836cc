"""What callers of the project give for a parameter, or for an attribute that keeps one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Site
from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.shared.assignments import pairs_of
from tensortrail.rules.shared.functions import matched, names_of_parameters
from tensortrail.rules.shared.objects import is_none, is_self, is_self_or_cls
from tensortrail.rules.unchanging import unchanging
from tensortrail.rules.view import FunctionNode, Module

_DEPTH = 2
"""Functions that hand the value on."""
_MOST = 16
"""Calls of a file that are looked at."""


@unchanging(frozen=True, slots=True)
class Given:
    """A value that a parameter gets, and the file in which it stands."""

    module: Module
    node: ast.expr


def given_for(
    module: Module, node: ast.expr, far: bool = True, depth: int = _DEPTH
) -> Iterator[Given]:
    """For `device` or `self.device`, if it is what the function or the constructor was given. Calls
    in other files are looked for if `far`."""
    for name in _as_given(module, node):
        function = _function_that_takes(module, name)
        if function is not None:
            yield from _passed(module, function, name.id, far, depth)


def passing(given: Given | None) -> list[tuple[Site, str]]:
    """The call, for the trail of a finding."""
    return [] if given is None else [(given.module.site(given.node), "it is passed here")]


def is_untold(module: Module, node: ast.expr) -> bool:
    """Nothing but a name says what it is."""
    value = module.value_of(node)
    return not (value.kinds and value.sure)


def _as_given(module: Module, node: ast.expr) -> Iterator[ast.Name]:
    """The parameters that the value is, unchanged, on some path."""
    if isinstance(node, ast.Name):
        origins = module.value_of(node).origins
        yield from [node] if not origins else (e for e in origins if isinstance(e, ast.Name))
    elif isinstance(node, ast.Attribute) and is_self(node.value):
        cls = module.class_of(node)
        for each in module.members(node.attr, cls) if cls is not None else ():
            stored = _stored(module, each)
            if isinstance(stored, ast.Name):
                yield stored


def _stored(module: Module, target: ast.Attribute) -> ast.expr | None:
    """What `self.device = device` puts there."""
    if not is_self(target.value) or not isinstance(target.ctx, ast.Store):
        return None
    statement = module.statement_of(target)
    if isinstance(statement, ast.AnnAssign):
        return statement.value
    pairs = pairs_of(statement) if isinstance(statement, ast.Assign) else ()
    return next((value for each, value in pairs if each is target), None)


def _function_that_takes(module: Module, name: ast.Name) -> FunctionNode | None:
    """It never gives the parameter another value."""
    function = module.function_of(name)
    while function is not None:
        if name.id in names_of_parameters(function):
            uses = module.uses(name.id, function)
            stored = any(isinstance(each.ctx, ast.Store) for each in uses)
            return None if stored else function
        function = module.function_of(function)
    return None


def _passed(
    module: Module, function: FunctionNode, name: str, far: bool, depth: int
) -> Iterator[Given]:
    default = {each.arg: value for each, value in with_defaults(function.args)}.get(name)
    if default is not None and not is_none(default):
        yield Given(module, default)
    here = [Given(module, each) for each in _given_here(module, function, name)]
    far = far and _is_known_by_name(module, function)
    others = module.given_elsewhere(function, name) if far else ()
    for each in (*here, *(Given(*each) for each in others)):
        follow = depth > 0 and is_untold(each.module, each.node)
        behind = list(given_for(each.module, each.node, far, depth - 1)) if follow else []
        yield from behind or [each]


def _is_known_by_name(module: Module, function: FunctionNode) -> bool:
    """Not a method, which other files call on objects whose class is seldom known there."""
    return function.name == "__init__" or isinstance(module.parent(function), ast.Module)


def _given_here(module: Module, function: FunctionNode, name: str) -> Iterator[ast.expr]:
    for call in _calls_of(module, function):
        yield from (value for own, value in matched(function, call) if own == name)


def _calls_of(module: Module, function: FunctionNode) -> list[ast.Call]:
    """By the name of the function, or by that of its class."""
    cls = module.parent(function)
    if not isinstance(cls, ast.ClassDef):
        found = [e for e in module.calls(function.name) if isinstance(e.func, ast.Name)]
    elif function.name == "__init__":
        found = [e for e in module.calls(cls.name) if isinstance(e.func, ast.Name)]
    else:
        calls = module.calls(function.name)
        found = [each for each in calls if _is_of_class(module, each, cls)]
    return found[:_MOST]


def _is_of_class(module: Module, call: ast.Call, cls: ast.ClassDef) -> bool:
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if owner is None:
        return False
    if is_self_or_cls(owner):
        return module.class_of(call) is cls
    return module.text(owner) == cls.name or _is_made_of(module, owner, cls)


def _is_made_of(module: Module, owner: ast.expr, cls: ast.ClassDef) -> bool:
    named = module.value_of(owner).cls
    return bool(named) and named in (cls.name, f"{module.name}.{cls.name}")
