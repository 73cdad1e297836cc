"""Modules that are kept by a function: a closure, a lambda, a partial."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from tensortrail.rules.shared.attributes import is_read_elsewhere
from tensortrail.rules.shared.functions import called_here, matched, parameter_names
from tensortrail.rules.shared.objects import is_name, is_self, resolved_name
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import FunctionNode, Module

_DEEPEST = 2
"""Functions that give back what another one makes."""
Closure = ast.FunctionDef | ast.Lambda


def kept_in(
    module: Module, value: ast.expr, is_kept: Callable[[Module, ast.expr], bool]
) -> ast.expr | None:
    """What makes the thing that the function in `value` keeps, if it is of the sort asked for."""
    return next((made for made in _made_for(module, value) if is_kept(module, made)), None)


def kept_by_functions(
    module: Module, is_kept: Callable[[Module, ast.expr], bool]
) -> Iterator[tuple[ast.Assign, ast.Attribute, ast.expr]]:
    """`self.f = lambda x: x - mean` of a module that reads it elsewhere: the assignment, its
    attribute, and what made `mean`."""
    for cls in module.nodes(ast.ClassDef):
        facts = module.class_facts(cls)
        if facts is None or not facts.is_module:
            continue
        for assign in module.nodes(ast.Assign, cls):
            target = assign.targets[0]
            if not isinstance(target, ast.Attribute) or not is_self(target.value):
                continue
            made = kept_in(module, assign.value, is_kept)
            if made is not None and is_read_elsewhere(module, cls, target):
                yield assign, target, made


def _made_for(module: Module, value: ast.expr) -> Iterator[ast.expr]:
    if isinstance(value, ast.Lambda):
        yield from _used_by(module, value, module.function_of(value), None)
    elif isinstance(value, ast.Name):
        around = module.function_of(value)
        for inner in _inner(module, around, value.id):
            yield from _used_by(module, inner, around, None)
    elif isinstance(value, ast.Call) and resolved_name(module, value) == "partial":
        arguments = (*value.args[1:], *(each.value for each in value.keywords))
        yield from (_local(module, each) for each in arguments)
    elif isinstance(value, ast.Call):
        yield from _made_by(module, value, _DEEPEST)


def _made_by(module: Module, call: ast.Call, depth: int) -> Iterator[ast.expr]:
    """What the function that the call gives keeps: made in the function called, or passed to it."""
    function = called_here(module, call)
    if function is None:
        return
    for closure in _returned(module, function):
        yield from _used_by(module, closure, function, call)
    for each in module.nodes(ast.Return, function) if depth else ():
        if isinstance(each.value, ast.Call):
            taken = dict(matched(function, call))
            for made in _made_by(module, each.value, depth - 1):
                name = made.id if isinstance(made, ast.Name) else ""
                yield _local(module, taken[name]) if name in taken else made


def _inner(module: Module, function: FunctionNode | None, name: str) -> Iterator[ast.FunctionDef]:
    if function is not None:
        inner = module.nodes(ast.FunctionDef, function)
        yield from (e for e in inner if e.name == name and module.function_of(e) is function)


def _returned(module: Module, function: FunctionNode) -> Iterator[Closure]:
    """The lambda or nested function that it gives back."""
    for each in module.nodes(ast.Return, function):
        if module.function_of(each) is not function:
            continue
        if isinstance(each.value, ast.Lambda):
            yield each.value
        elif isinstance(each.value, ast.Name):
            yield from _inner(module, function, each.value.id)


def _used_by(
    module: Module, closure: Closure, around: FunctionNode | None, call: ast.Call | None
) -> Iterator[ast.expr]:
    """What the free names of a closure stand for: local variables, or arguments of the call."""
    own = {each.arg for each in ast.walk(closure.args) if isinstance(each, ast.arg)}
    free = {
        each.id
        for each in module.nodes(ast.Name, closure)
        if isinstance(each.ctx, ast.Load) and each.id not in own
    }
    if around is None:
        return
    taken = dict(matched(around, call)) if call is not None else {}
    for name in sorted(free):
        if name in taken and name in parameter_names(around):
            yield _local(module, taken[name])
        for assign in module.nodes(ast.Assign, around):
            if is_name(assign.targets[0], name) and not _is_registered(module, around, name):
                yield assign.value


def _local(module: Module, node: ast.expr) -> ast.expr:
    function = module.function_of(node)
    if isinstance(node, ast.Name) and function is not None:
        return node if _is_registered(module, function, node.id) else behind(module, node)
    return node


def _is_registered(module: Module, function: FunctionNode, name: str) -> bool:
    """`self.layer = layer`, or it is handed to something that may keep it."""
    for assign in module.nodes(ast.Assign, function):
        target = assign.targets[0]
        own = isinstance(target, (ast.Attribute, ast.Subscript)) and not is_self(target)
        if own and is_name(assign.value, name):
            return True
    return any(
        is_name(each, name)
        for call in module.calls("add_module", "register_module", "append", inside=function)
        for each in call.args
    )
