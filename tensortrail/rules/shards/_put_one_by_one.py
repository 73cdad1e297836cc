"""Loops that put a new parameter under each name that a model gives once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.objects import called, receiver, within
from tensortrail.rules.view import Module


def named_parameters_of(module: Module, loop: ast.For) -> str | None:
    """The model of `for name, p in model.named_parameters():`, submodules and all."""
    for call in (loop.iter, *module.nodes(ast.Call, loop.iter)):
        if isinstance(call, ast.Call) and called(call) == "named_parameters":
            options = {each.arg for each in call.keywords}
            owner = receiver(call)
            if options & {"recurse", "remove_duplicate", None} or owner is None:
                return None
            return module.text(owner)
    return None


def puts(module: Module, loop: ast.For) -> Iterator[ast.AST]:
    """Statements of the loop that put a new Parameter under the name at hand."""
    target = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else None
    if not isinstance(target, ast.Name):
        return
    for call in module.nodes(ast.Call, loop):
        if called(call) not in ("setattr", "register_parameter") or not call.args:
            continue
        if _is_new(module, call.args[-1], loop) and not _names(call, target.id):
            yield call
    for assign in module.nodes(ast.Assign, loop):
        place = assign.targets[0]
        if isinstance(place, ast.Subscript) and isinstance(place.value, ast.Attribute):
            whole = isinstance(place.slice, ast.Name) and place.slice.id == target.id
            if whole or place.value.attr != "_parameters":
                continue
            if _is_new(module, assign.value, loop):
                yield assign


def _names(call: ast.Call, name: str) -> bool:
    """The whole name is given: the module is a leaf, as no parameter has a dot in its name."""
    return any(isinstance(each, ast.Name) and each.id == name for each in call.args[:-1])


def _is_new(module: Module, value: ast.expr, loop: ast.For) -> bool:
    sources = (value, *module.value_of(value).origins)
    return any(
        isinstance(each, ast.Call)
        and called(each) in ("Parameter", "type")
        and within(each, loop, module)
        for each in sources
    )
