"""Tensors that are brought to the CPU, and there filled by generators of the caller."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.places import Where
from tensortrail.rules.shared.functions import names_of_parameters
from tensortrail.rules.shared.objects import keyword, names_in, receiver
from tensortrail.rules.view import FunctionNode, Module

_IN_PLACE = tuple("normal_ uniform_ random_ bernoulli_ exponential_ log_normal_".split())


def drawn_on_the_cpu(module: Module) -> Iterator[tuple[ast.Call, str]]:
    """`q[i].exponential_(generator=g)` of `q = q.cpu()`, and the name of the generator, which no
    line asks for its device."""
    for call in module.calls(*_IN_PLACE):
        given, function = keyword(call, "generator"), module.function_of(call)
        if not isinstance(given, ast.Name) or function is None:
            continue
        asked = any(module.text(each.value) == given.id for each in module.members("device"))
        mine = not asked and _is_callers(module, function, given)
        if mine and _was_brought(module, function, call):
            yield call, given.id


def _is_callers(module: Module, function: FunctionNode, given: ast.Name) -> bool:
    """An argument, or what a loop takes out of one."""
    names = {given.id}
    for loop in module.ancestors(given):
        if isinstance(loop, ast.For) and given.id in names_in(loop.target):
            names |= names_in(loop.iter)
    return not names.isdisjoint(names_of_parameters(function))


def _was_brought(module: Module, function: FunctionNode, draw: ast.Call) -> bool:
    owner = receiver(draw)
    held = module.places(function).seen.get(owner) if owner is not None else None
    place = held.only if held is not None else None
    return place is not None and (place.where, place.subject) == (Where.LITERAL, "cpu")
