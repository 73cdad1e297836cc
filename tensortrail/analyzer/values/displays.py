"""The value of lists, tuples, sets and dicts that are written out, and of comprehensions."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tensortrail.analyzer.values import containers, narrowing
from tensortrail.analyzer.values.elements import element_of
from tensortrail.analyzer.values.state import State
from tensortrail.analyzer.values.targets import Targets
from tensortrail.rules.words import UNKNOWN_VALUE, Kind, Owner, Value


def of_comprehension(
    evaluator: Targets,
    node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
    state: State,
) -> Value:
    inner = state.copy()
    for generator in node.generators:
        evaluator.bind_element(generator.target, generator.iter, inner)
        for test in generator.ifs:
            evaluator.value(test, inner)
            narrowing.narrow(evaluator, test, True, inner)
    if isinstance(node, ast.DictComp):
        evaluator.value(node.key, inner)
        value = evaluator.value(node.value, inner)
        return _mapping([value], value.is_tensor, value.sure)
    return containers.holding(containers.contents_of([evaluator.value(node.elt, inner)]))


def _mapping(held: Sequence[Value], tensors: bool, sure: bool) -> Value:
    kind = Kind.STATE_DICT if tensors else Kind.OTHER
    contents = containers.contents_of(held, by_key=True)
    return Value(frozenset({kind}), sure=sure, owner=Owner.HERE, contents=contents)


def of_display(evaluator: Targets, node: ast.List | ast.Tuple | ast.Set, state: State) -> Value:
    items = [_spread(evaluator, each, state) for each in node.elts]
    in_order = not any(isinstance(each, ast.Starred) for each in node.elts)
    return containers.holding(containers.contents_of(items, in_order))


def _spread(evaluator: Targets, item: ast.expr, state: State) -> Value:
    value = evaluator.value(item, state)
    if not isinstance(item, ast.Starred):
        return value
    return containers.as_value(element_of(evaluator, item.value, state))


def of_dict(evaluator: Targets, node: ast.Dict, state: State) -> Value:
    values = [evaluator.value(part, state) for part in node.values]
    for key in node.keys:
        if key is not None:
            evaluator.value(key, state)
    tensors = bool(values) and all(value.is_tensor for value in values)
    spread = [
        (containers.item_of(value) or UNKNOWN_VALUE) if key is None else value
        for key, value in zip(node.keys, values, strict=True)
    ]
    return _mapping(spread, tensors, all(value.sure for value in values))
