"""The value of a call: what constructors, tensor and module methods and project functions give."""

from __future__ import annotations

import ast
from dataclasses import replace

from tensortrail.analyzer.facts import known
from tensortrail.analyzer.values import containers, uses
from tensortrail.analyzer.values.evaluating import Evaluating
from tensortrail.analyzer.values.library_calls import of_library
from tensortrail.analyzer.values.methods import value_of_method
from tensortrail.analyzer.values.placements import placement_of_argument
from tensortrail.analyzer.values.state import State
from tensortrail.rules.shared.objects import keyword
from tensortrail.rules.words import UNKNOWN_VALUE, Contents, Kind, Owner, Placement, Value


def value_of_call(evaluator: Evaluating, call: ast.Call, state: State) -> Value:
    for argument in call.args:
        evaluator.value(argument, state)
    for each in call.keywords:
        evaluator.value(each.value, state)
    receiver = UNKNOWN_VALUE
    if isinstance(call.func, ast.Attribute):
        receiver = evaluator.value(call.func.value, state)
        evaluator.seen.setdefault(call.func, UNKNOWN_VALUE)
        if receiver.kind is Kind.MODULE or receiver.cls:
            evaluator.member(call.func, receiver, state)
    else:
        evaluator.value(call.func, state)
    dotted = evaluator.world.qualified(call.func)
    for used in uses.tensors_used(evaluator, call, dotted, state):
        evaluator.used.update(uses.bindings_of(used))
    found = of_library(evaluator, call, dotted, state)
    if found is None and isinstance(call.func, ast.Attribute):
        found = value_of_method(evaluator, call, call.func, receiver, state)
    if found is None:
        found = _of_project(evaluator, call, dotted, receiver)
    _move_arguments(evaluator, call, state)
    return found


def _submodules(evaluator: Evaluating, call: ast.Call, dotted: str) -> Contents | None:
    """What `nn.ModuleList([...])` holds."""
    given = [evaluator.seen.get(each, UNKNOWN_VALUE) for each in call.args]
    if dotted == "torch.nn.Sequential":
        return containers.contents_of(given, in_order=True)
    if dotted in containers.MODULE_LISTS or dotted in containers.MODULE_MAPPINGS:
        by_key = dotted in containers.MODULE_MAPPINGS
        return given[0].contents if given else Contents(by_key=by_key)
    return None


def _of_project(evaluator: Evaluating, call: ast.Call, dotted: str, receiver: Value) -> Value:
    callee = evaluator.seen.get(call.func, UNKNOWN_VALUE)
    if callee.kind is Kind.MODULE and callee.cls in known.LAYERS:
        return Value(frozenset({Kind.TENSOR}), sure=callee.sure, owner=Owner.HERE)
    if callee.kind is Kind.MODULE and callee.cls:
        return evaluator.world.result_of(call, callee.cls, "forward")
    said = evaluator.world.annotated_return(call)
    if said.kinds:
        return said.value
    if dotted.rpartition(".")[2][:1].isupper():
        kind = evaluator.world.kind_of_class_named(dotted)
        kinds = frozenset({kind} if kind else ())
        place = placement_of_argument(evaluator, keyword(call, "device"))
        held = _submodules(evaluator, call, dotted)
        return Value(kinds, place, cls=dotted, owner=Owner.HERE, contents=held)
    if said.cls:
        return Value(cls=said.cls)
    function = evaluator.world.function_facts(call)
    if function is not None and len(function.returns) == 1:
        given = argument_named(call, function.params, next(iter(function.returns)))
        if given is not None:
            return replace(evaluator.seen.get(given, UNKNOWN_VALUE), origins=())
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return evaluator.world.result_of(call, receiver.cls, method)


def _move_arguments(evaluator: Evaluating, call: ast.Call, state: State) -> None:
    """In-place moves of arguments by functions known to make them."""
    facts = evaluator.world.function_facts(call)
    if facts is None:
        return
    for name, device in facts.moves.items():
        given = argument_named(call, facts.params, name)
        if given is None:
            continue
        value = evaluator.seen.get(given, UNKNOWN_VALUE)
        for path in (value.path, *(value.shares if value.kind is Kind.MODULE else ())):
            evaluator.move(path, Placement(device, call), state)


def argument_named(call: ast.Call, params: tuple[str, ...], name: str) -> ast.expr | None:
    for each in call.keywords:
        if each.arg == name:
            return each.value
    index = params.index(name) if name in params else len(call.args)
    if any(isinstance(argument, ast.Starred) for argument in call.args[: index + 1]):
        return None
    return call.args[index] if index < len(call.args) else None
