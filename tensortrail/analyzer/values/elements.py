"""What one step of a loop gives: of a container, a module's parameters, a state dict's items."""

from __future__ import annotations

import ast
from dataclasses import replace

from tensortrail.analyzer.values import containers
from tensortrail.analyzer.values.containers import Element
from tensortrail.analyzer.values.evaluating import Evaluating
from tensortrail.analyzer.values.state import State
from tensortrail.rules.words import UNKNOWN_VALUE, Kind, Value


def element_of(evaluator: Evaluating, source: ast.expr, state: State) -> Element:
    """What one step of iterating over `source` gives."""
    if isinstance(source, (ast.List, ast.Tuple)) and source.elts:
        first = evaluator.seen.get(source.elts[0], UNKNOWN_VALUE)
        same = all(
            evaluator.seen.get(each, UNKNOWN_VALUE).kinds == first.kinds for each in source.elts
        )
        return replace(first, path="") if same else UNKNOWN_VALUE
    if not isinstance(source, ast.Call):
        return containers.element_of_value(evaluator.seen.get(source, UNKNOWN_VALUE))
    name = source.func.attr if isinstance(source.func, ast.Attribute) else ""
    if name and isinstance(source.func, ast.Attribute):
        base = evaluator.seen.get(source.func.value, UNKNOWN_VALUE)
        element = element_of_method(name, base)
        if element is UNKNOWN_VALUE:
            return containers.element_of_value(evaluator.seen.get(source, UNKNOWN_VALUE))
        return element
    if isinstance(source.func, ast.Name) and source.args:
        if source.func.id == "enumerate":
            return (containers.OTHER, element_of(evaluator, source.args[0], state))
        if source.func.id in ("list", "tuple", "reversed", "sorted", "iter", "tqdm"):
            return element_of(evaluator, source.args[0], state)
        if source.func.id == "zip":
            return tuple(element_of(evaluator, each, state) for each in source.args)
    return containers.item_of(evaluator.seen.get(source, UNKNOWN_VALUE)) or UNKNOWN_VALUE


def element_of_method(name: str, base: Value) -> Element:
    held = containers.element_of_method(name, base)
    if held is not None:
        return held
    under = f"{base.path}.*" if base.path else ""
    sure = base.kind is Kind.MODULE and base.sure
    parameter = Value(
        frozenset({Kind.PARAMETER}), base.placement, True, owner=base.owner, path=under
    )
    tensor = Value(frozenset({Kind.TENSOR}), base.placement, True, owner=base.owner, path=under)
    module = Value(frozenset({Kind.MODULE}), base.placement, sure, owner=base.owner, path=under)
    if name == "parameters":
        return parameter
    if name == "buffers":
        return tensor
    if name in ("modules", "children"):
        return module
    if name == "named_parameters":
        return (containers.OTHER, parameter)
    if name == "named_buffers":
        return (containers.OTHER, tensor)
    if name in ("named_modules", "named_children"):
        return (containers.OTHER, module)
    if base.kind is Kind.STATE_DICT:
        held = replace(tensor, sure=False)
        given: dict[str, Element] = {
            "items": (containers.OTHER, held),
            "values": held,
            "keys": containers.OTHER,
        }
        return given.get(name, UNKNOWN_VALUE)
    return UNKNOWN_VALUE
