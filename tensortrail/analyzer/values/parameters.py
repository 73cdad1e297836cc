"""What the parameters of a function are: by annotation, default, name and use."""

from __future__ import annotations

import ast

from tensortrail.analyzer.facts import hints, known
from tensortrail.analyzer.facts.classes import kind_of_class
from tensortrail.analyzer.values.evaluating import Evaluating
from tensortrail.analyzer.values.state import State
from tensortrail.rules.view import FunctionNode
from tensortrail.rules.words import Kind, Owner, Placement, Value


def bind_parameters(evaluator: Evaluating, function: FunctionNode, cls: str, state: State) -> None:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    pairs = list(zip(positional, [*defaults, *arguments.defaults], strict=True))
    pairs += list(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))
    static = any(_last_name(each) == "staticmethod" for each in function.decorator_list)
    for index, (argument, default) in enumerate(pairs):
        if index == 0 and cls and not static and argument.arg in ("self", "cls"):
            state.bind(argument.arg, _self_value(evaluator, argument.arg, cls))
        else:
            state.bind(argument.arg, _parameter(evaluator, argument, default, state))
    for rest in (arguments.vararg, arguments.kwarg):
        if rest is not None:
            other = Value(frozenset({Kind.OTHER}), owner=Owner.CALLER, path=rest.arg)
            state.bind(rest.arg, other)


def _self_value(evaluator: Evaluating, name: str, cls: str) -> Value:
    if name == "cls":
        return Value(frozenset({Kind.OTHER}), owner=Owner.CALLER, path="cls")
    facts = evaluator.world.class_facts(cls)
    kind = kind_of_class(facts)
    kinds = frozenset({kind} if kind else ())
    return Value(kinds, cls=cls, owner=Owner.CALLER, path="self")


def _parameter(
    evaluator: Evaluating, argument: ast.arg, default: ast.expr | None, state: State
) -> Value:
    name = argument.arg
    said = hints.read(
        argument.annotation, evaluator.world.qualified, evaluator.world.kind_of_class_named, name
    )
    kinds, sure = said.kinds, True
    place = Placement()
    if default is not None:
        value = evaluator.value(default, state)
        plain = value.kind is Kind.OTHER and value.constant is not None
        if plain and argument.annotation is None:
            kinds = value.kinds
    if not kinds and argument.annotation is None:
        kinds, sure = known.kind_by_name(name), False
    if Kind.SETTINGS not in kinds and not kinds and _reads_like_settings(name, said.cls):
        kinds, sure = frozenset({Kind.SETTINGS}), bool(said.cls)
    found = Value(kinds, place, sure, said.cls, Owner.CALLER, name, contents=said.contents)
    return evaluator.by_use(found)


def _reads_like_settings(name: str, cls: str) -> bool:
    """An object of settings has no methods of its own that would show it: the name of its class or,
    as a belief that is not sure, of the parameter is all there is."""
    last = (cls or name).rpartition(".")[2].lower()
    return last.endswith(("settings", "config", "options", "cfg")) or last == "args"


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
