"""What code does with a value as evidence of what it is: what only a tensor has or goes to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from tensortrail.analyzer.facts import known
from tensortrail.analyzer.values.evaluating import Binding, Evaluating
from tensortrail.analyzer.values.state import State
from tensortrail.rules.words import UNKNOWN_VALUE, Kind, Value


def bindings_of(value: Value) -> Iterator[Binding]:
    """The bindings a value may stand for; several where ways have joined."""
    yield binding_of(value)
    if len(value.origins) > 1:
        yield from ((value.path, (origin,), value.asked) for origin in value.origins)


def binding_of(value: Value) -> Binding:
    return value.path, value.origins, value.asked


def is_open(value: Value) -> bool:
    """Nothing is known of the value, or only believed by its name: evidence is welcome."""
    return bool(value.path) and (not value.kinds or (value.is_tensor and not value.sure))


def tensors_used(
    evaluator: Evaluating, call: ast.Call, dotted: str, state: State
) -> Iterator[Value]:
    """The values that this call shows to be tensors."""
    func = call.func
    if isinstance(func, ast.Attribute):
        for node in _receivers(func, call):
            value = evaluator.seen.get(node, UNKNOWN_VALUE)
            sure = func.attr in known.PROVES_A_TENSOR or value.is_tensor
            if sure and is_open(value) and _root_name(value.path) in state.values:
                yield value
    for node in _subjects(call, dotted):
        value = evaluator.seen.get(node, UNKNOWN_VALUE)
        if is_open(value):
            yield value
    if call.args or call.keywords:
        yield from _wanted_by_callee(evaluator, call)


def _root_name(path: str) -> str:
    return path.partition(".")[0].partition("[")[0]


def _receivers(func: ast.Attribute, call: ast.Call) -> Iterator[ast.expr]:
    """What the method is called on, and what that is a view of."""
    if func.attr in known.PROVES_A_TENSOR:
        yield func.value
        yield from _roots(func.value)
    elif func.attr in known.PROVES_A_TENSOR_ALONE and not call.args:
        yield func.value


def _subjects(call: ast.Call, dotted: str) -> Iterator[ast.expr]:
    """Arguments of the library's functions that take tensors alone."""
    if dotted in known.TAKES_A_TENSOR:
        first = call.args[0] if call.args else None
        named = (each.value for each in call.keywords if each.arg in ("input", "tensor"))
        subject = first if first is not None else next(named, None)
        if subject is not None and not isinstance(subject, ast.Starred):
            yield subject
    listed = call.args[0] if call.args and dotted in known.TAKES_TENSORS else None
    if isinstance(listed, (ast.List, ast.Tuple)):
        yield from listed.elts


def _roots(node: ast.expr) -> Iterator[ast.expr]:
    """`x` of `x.reshape(-1).data`: views of a tensor are made of a tensor."""
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr not in known.TENSOR_METHODS:
                return
            node = node.func.value
        elif isinstance(node, ast.Attribute) and node.attr == "data":
            node = node.value
        else:
            return
        yield node


def _wanted_by_callee(evaluator: Evaluating, call: ast.Call) -> Iterator[Value]:
    """Arguments that the called function of the project declares to be tensors."""
    given: list[tuple[int | str | None, ast.expr]] = [*enumerate(call.args)]
    given += [(each.arg, each.value) for each in call.keywords]
    seen = evaluator.seen
    unknown = [
        (where, value) for where, node in given if is_open(value := seen.get(node, UNKNOWN_VALUE))
    ]
    wanted = evaluator.world.tensor_parameters(call) if unknown else ()
    if wanted:
        yield from (value for where, value in unknown if where in wanted)


def by_use(value: Value) -> Value:
    """The value, now that its use shows that it is a tensor."""
    kinds = value.kinds or frozenset({Kind.TENSOR})
    return replace(value, kinds=kinds, sure=True)
