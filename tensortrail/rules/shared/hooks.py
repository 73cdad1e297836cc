"""The functions of a file that are registered as hooks of modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.shared.classes import classes_named
from tensortrail.rules.shared.functions import called_here, matched, own_returns
from tensortrail.rules.shared.objects import called, is_self, names_in
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import FunctionNode, Module

FORWARD, BEFORE = "register_forward_hook", "register_forward_pre_hook"
_GIVEN_FIRST = 2
"""What a hook is given before the output: the module and its inputs."""


class Hook(NamedTuple):
    registered: ast.Call
    function: FunctionNode | ast.Lambda
    given: tuple[str, ...]
    """The parameters that hold what the hook may replace: the output, or the inputs."""


def hooks(module: Module, *kinds: str) -> Iterator[Hook]:
    """Hooks of these kinds whose code is in the file, each where it is registered."""
    for call in module.calls(*kinds):
        said = module.argument(call, 0, "hook")
        function = _function(module, call, said) if said is not None else None
        if function is not None:
            given = _replaceable(function, called(call), _bound(module, said))
            yield Hook(call, *_handed_on(module, function, given))


def _function(
    module: Module, call: ast.Call, said: ast.expr | None
) -> FunctionNode | ast.Lambda | None:
    """`keep`, `self.keep`, `partial(keep, name)`, `maker(name)` which returns the function in it,
    and `Keeper(name)`, an object that can be called."""
    if said is None:
        return None
    made = behind(module, said)
    if isinstance(made, ast.Lambda):
        return made
    if isinstance(made, ast.Attribute):
        own = is_self(made.value)
        cls = module.class_of(call) if own else _class_of_value(module, made.value)
        return _method(cls, made.attr)
    if isinstance(made, ast.Name):
        return _defined(module, made.id)
    if not isinstance(made, ast.Call):
        return None
    if module.qualified(made.func) == "functools.partial" and made.args:
        return _function(module, call, made.args[0])
    maker = made.func.id if isinstance(made.func, ast.Name) else ""
    if isinstance(made.func, ast.Attribute) and is_self(made.func.value):
        return _inner(module, _method(module.class_of(call), made.func.attr))
    classes = classes_named(module, maker)
    if len(classes) == 1:
        return _method(classes[0], "__call__")
    return _inner(module, _defined(module, maker))


def _class_of_value(module: Module, value: ast.expr) -> ast.ClassDef | None:
    name = module.value_of(value).cls.rpartition(".")[2]
    found = classes_named(module, name) if name else []
    return found[0] if len(found) == 1 else None


def _handed_on(
    module: Module, function: FunctionNode | ast.Lambda, given: tuple[str, ...]
) -> tuple[FunctionNode | ast.Lambda, tuple[str, ...]]:
    """The function that does the work of one which only returns its result."""
    body = function.body if isinstance(function, ast.FunctionDef) else []
    only = body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None
    inner = called_here(module, only) if isinstance(only, ast.Call) else None
    if inner is None or not isinstance(only, ast.Call):
        return function, given
    names = [name for name, value in matched(inner, only) if names_in(value) & set(given)]
    return inner, tuple(names)


def _defined(module: Module, name: str) -> FunctionNode | None:
    """The function of that name, if the file has but one that is no method."""
    found = [
        each
        for each in module.nodes(ast.FunctionDef)
        if each.name == name and not isinstance(module.parent(each), ast.ClassDef)
    ]
    return found[0] if len(found) == 1 else None


def _method(cls: ast.ClassDef | None, name: str) -> FunctionNode | None:
    own = cls.body if cls is not None else []
    return next((e for e in own if isinstance(e, ast.FunctionDef) and e.name == name), None)


def _inner(module: Module, maker: FunctionNode | None) -> FunctionNode | ast.Lambda | None:
    """The function that a function makes and returns."""
    given = [each.value for each in own_returns(module, maker)]
    if maker is None or len(given) != 1 or given[0] is None:
        return None
    if isinstance(given[0], ast.Lambda):
        return given[0]
    named = getattr(given[0], "id", "")
    inner = [each for each in module.nodes(ast.FunctionDef, maker) if each.name == named]
    return inner[0] if len(inner) == 1 else None


def _bound(module: Module, said: ast.expr | None) -> int:
    """How many parameters `partial(keep, name)` has filled."""
    made = behind(module, said) if said is not None else None
    partial = isinstance(made, ast.Call) and module.qualified(made.func) == "functools.partial"
    return len(made.args) - 1 if partial and isinstance(made, ast.Call) else 0


def _replaceable(function: FunctionNode | ast.Lambda, kind: str, bound: int) -> tuple[str, ...]:
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    names = names[bound:]
    if isinstance(function, ast.FunctionDef) and names[:1] == ["self"]:
        names = names[1:]
    return tuple(names[1:] if kind == BEFORE else names[_GIVEN_FIRST:])
