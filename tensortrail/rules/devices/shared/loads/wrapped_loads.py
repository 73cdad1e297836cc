"""Functions of the project that pass a parameter on as the `map_location` of `torch.load`, and
calls that leave it out and load weights."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.defaults import none_by_default
from tensortrail.rules.devices.shared.calls.accepted import accepts
from tensortrail.rules.devices.shared.calls.customs import may_be_given_anything, named
from tensortrail.rules.devices.shared.loads.loaded_where import left_out_by_all
from tensortrail.rules.shared.functions import called_here
from tensortrail.rules.view import Module

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def loaded_without_location(module: Module) -> Iterator[tuple[ast.Call, str]]:
    """`net.load_state_dict(read(path)["model"])`, where `read` takes the location, None by default,
    and other calls give it; with the name of the parameter."""
    reported: set[ast.Call] = set()
    for taken in module.calls("load_state_dict"):
        for call in _made_by(module, taken.args[0]) if taken.args else ():
            name = _location_of(module, call) if call not in reported else None
            if name is None or name in named(call) or may_be_given_anything(call):
                continue
            if accepts(module, call, name):
                reported.add(call)
                yield call, name


def _made_by(module: Module, state: ast.expr) -> Iterator[ast.Call]:
    state = _whole(state)
    made = [state] if isinstance(state, ast.Call) else module.value_of(state).origins
    whole = (_whole(each) for each in made if isinstance(each, ast.expr))
    yield from (each for each in whole if isinstance(each, ast.Call))


def _whole(node: ast.expr) -> ast.expr:
    """`read(path)` of `read(path)["model"]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _location_of(module: Module, call: ast.Call) -> str | None:
    own = called_here(module, call)
    if own is not None:
        return location_parameter(module, own)
    name = module.qualified(call.func)
    return module.about(name, location_parameter) if name else None


def location_parameter(module: Module, function: ast.AST) -> str | None:
    """The parameter that the function passes on, if it is None by default and somebody gives it."""
    if not isinstance(function, _FUNCTIONS):
        return None
    for load in module.calls("torch.load", inside=function):
        said = module.argument(load, 1, "map_location")
        if not isinstance(said, ast.Name) or left_out_by_all(module, load) is not None:
            continue
        bound = any(isinstance(each.ctx, ast.Store) for each in module.uses(said.id, function))
        if not bound and none_by_default(function.args, said.id) is not None:
            return said.id
    return None
