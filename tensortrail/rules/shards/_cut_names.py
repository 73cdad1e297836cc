"""Prefixes that are cut off the names of a state dict before it is loaded."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shards._wrapped import PREFIXES
from tensortrail.rules.shared.callees import asked_of_callee
from tensortrail.rules.shared.functions import own_returns
from tensortrail.rules.shared.objects import called, is_name
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import FunctionNode, Module

_CONSUMES = "consume_prefix_in_state_dict_if_present"


def cut_off(module: Module, given: ast.expr) -> frozenset[str]:
    """Those that no name of the state dict can begin with any more."""
    made = behind(module, given)
    if isinstance(made, ast.Name) and made is not given:
        return cut_off(module, made)
    if isinstance(made, ast.DictComp):
        return _cut_by(module, made.key)
    found = _cut_in_place(module, given) if isinstance(given, ast.Name) else frozenset[str]()
    if isinstance(made, ast.Call) and not found:
        found = asked_of_callee(module, made, _cut_from_result) or frozenset()
    return found


def _cut_from_result(module: Module, function: ast.AST) -> frozenset[str]:
    """By a function of the project, off the names of what it returns."""
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return frozenset()
    values = [each.value for each in own_returns(module, function) if each.value is not None]
    cut = [_cut_by(module, made.key) for each in values
           if isinstance(made := behind(module, each), ast.DictComp)]  # fmt: skip
    cut += [_cut_in_place(module, each) for each in values if isinstance(each, ast.Name)]
    return frozenset.intersection(*cut) if len(cut) == len(values) > 0 else frozenset()


def _cut_in_place(module: Module, state: ast.Name) -> frozenset[str]:
    """By torch's own function, or as the mapping is filled: `clean[name[7:]] = value`."""
    function = module.function_of(state)
    for call in module.calls(_CONSUMES, inside=function):
        if len(call.args) > 1 and is_name(call.args[0], state.id):
            return _written(module, call.args[1])
    cut = [_cut_by(module, each) for each in _keys_stored(module, state, function)]
    return frozenset.intersection(*cut) if cut else frozenset()


def _keys_stored(
    module: Module, state: ast.Name, function: FunctionNode | None
) -> Iterator[ast.expr]:
    for item in module.nodes(ast.Subscript, function):
        if isinstance(item.ctx, ast.Store) and is_name(item.value, state.id):
            yield behind(module, item.slice)


def _cut_by(module: Module, key: ast.expr) -> frozenset[str]:
    """`k.replace("module.", "")`, `k.removeprefix("module.")`, `k[7:]`, and one of these where the
    name begins so."""
    match key:
        case ast.IfExp(test=test, body=body):
            return _cut_by(module, body) if _asks_how_it_begins(test) else frozenset()
        case ast.Call(args=[prefix, by, *_]) if called(key) == "replace":
            gone = module.value_of(by).constant == ""
            return _written(module, prefix) if gone else frozenset()
        case ast.Call(args=[prefix]) if called(key) == "removeprefix":
            return _written(module, prefix)
        case ast.Subscript(slice=ast.Slice(lower=ast.Call(args=[prefix]) as length)):
            return _written(module, prefix) if called(length) == "len" else frozenset()
        case ast.Subscript(slice=ast.Slice(lower=ast.Constant(value=length), upper=None)):
            return frozenset(each for each in PREFIXES.values() if len(each) == length)
        case ast.Name():
            return _cut_where_it_begins_so(module, key)
    return frozenset()


def _cut_where_it_begins_so(module: Module, name: ast.Name) -> frozenset[str]:
    """`if name.startswith("module."): name = name[7:]`"""
    function = module.function_of(name)
    bound = (
        each for each in module.nodes(ast.Assign, function)
        if any(is_name(target, name.id) for target in each.targets)
    )  # fmt: skip
    cut = [
        _cut_by(module, each.value)
        for each in bound
        if not isinstance(each.value, ast.Name)
        and any(_asks_how_it_begins(guard.test) for guard in module.guards_of(each))
    ]
    return frozenset[str]().union(*cut)


def _asks_how_it_begins(test: ast.expr) -> bool:
    return isinstance(test, ast.Call) and called(test) == "startswith"


def _written(module: Module, prefix: ast.expr) -> frozenset[str]:
    text = module.value_of(prefix).constant
    return frozenset({text}) if isinstance(text, str) and text.endswith(".") else frozenset()
