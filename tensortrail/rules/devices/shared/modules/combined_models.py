"""Models whose parameters are taken together one by one, as a moving average does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.devices.shared.batches.bound_together import names_bound
from tensortrail.rules.shared.functions import called_here, matched, outermost_function
from tensortrail.rules.shared.objects import called, given, name_of, receiver
from tensortrail.rules.view import FunctionNode, Module

_PARAMETERS = frozenset({"parameters", "named_parameters"})
_TOGETHER = frozenset({"add_", "sub_", "lerp_", "mul_", "add", "sub", "lerp", "addcmul_"})
_PLACES = (".to(", ".cpu(", ".cuda(", "device")


class Combined(NamedTuple):
    """Two models, by the text of their names, in one function."""

    at: ast.Call
    """The `zip` of their parameters, or the call of the function that does it."""
    models: tuple[str, str]


def combined_models(module: Module) -> Iterator[Combined]:
    for loop in module.nodes(ast.For):
        models = _zipped(module, loop)
        if models is None or not isinstance(loop.iter, ast.Call):
            continue
        yield Combined(loop.iter, models)
        function = outermost_function(module, loop)
        if function is not None:
            yield from _by_callers(module, function, models)


def _by_callers(
    module: Module, function: FunctionNode, models: tuple[str, str], depth: int = 2
) -> Iterator[Combined]:
    """`update(average, model)`, where the function pairs the parameters of its arguments."""
    for call in module.calls(function.name) if depth else ():
        if called_here(module, call) is not function:
            continue
        names = {name: name_of(module, each) for name, each in matched(function, call)}
        first, second = (names.get(each) for each in models)
        if first is None or second is None:
            continue
        yield Combined(call, (first, second))
        around = outermost_function(module, call)
        if around is not None:
            yield from _by_callers(module, around, (first, second), depth - 1)


def _zipped(module: Module, loop: ast.For) -> tuple[str, str] | None:
    """`a` and `b` of `for p, q in zip(a.parameters(), b.parameters())`, if the loop calculates
    with both and nothing in it says a device."""
    match loop:
        case ast.For(
            iter=ast.Call(func=ast.Name(id="zip"), args=[one, other]),
            target=ast.Tuple(elts=[first, second]),
        ):
            models = [_model(module, each) for each in (one, other)]
            sides = set(names_bound(first)), set(names_bound(second))
            text = " ".join(map(module.text, loop.body))
            if None in models or any(each in text for each in _PLACES):
                return None
            if any(_takes_both(module, each, sides) for each in loop.body):
                return str(models[0]), str(models[1])
    return None


def _model(module: Module, node: ast.expr) -> str | None:
    owner = receiver(node) if isinstance(node, ast.Call) and called(node) in _PARAMETERS else None
    return module.text(owner) if owner is not None else None


def _takes_both(module: Module, statement: ast.stmt, sides: tuple[set[str], set[str]]) -> bool:
    for one, other in _operands(module, statement):
        names = _names(one), _names(other)
        if any(first & sides[0] and last & sides[1] for first, last in (names, names[::-1])):
            return True
    return False


def _operands(module: Module, statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    for node in module.nodes(ast.BinOp, statement):
        yield node.left, node.right
    for call in module.nodes(ast.Call, statement):
        owner = receiver(call) if called(call) in _TOGETHER else None
        if owner is not None:
            yield from ((owner, each) for each in given(call))


def _names(node: ast.AST | None) -> set[str]:
    found = ast.walk(node) if node is not None else ()
    return {each.id for each in found if isinstance(each, ast.Name)}
