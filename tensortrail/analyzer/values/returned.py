"""What the functions of a project give back, by what they return or yield."""

from __future__ import annotations

import ast

from tensortrail.analyzer.facts import hints
from tensortrail.analyzer.facts.project_file import Place, ProjectFile
from tensortrail.analyzer.syntax.tree import SCOPES
from tensortrail.analyzer.values.attributes import joined
from tensortrail.analyzer.values.containers import contents_of, holding
from tensortrail.analyzer.values.flow import Flow
from tensortrail.rules.view import FunctionNode
from tensortrail.rules.words import UNKNOWN_VALUE, Owner, Value

_KEEP_THE_RESULT = frozenset(
    (
        "property staticmethod classmethod cached_property functools.cached_property "
        "functools.wraps functools.lru_cache functools.cache torch.no_grad torch.inference_mode "
        "torch.jit.script override typing.override typing_extensions.override"
    ).split()
)
_OFTEN_OVERRIDDEN = ("forward", "__call__")
"""Methods of every layer of a model: too many to be run, and each gives something else."""
_ANCESTORS = 6
"""How many classes are looked into for a method."""


def at_a_glance(file: ProjectFile, function: FunctionNode) -> Value | None:
    """The result of a function that need not, or should not, be run for it; None if it must."""
    if function.returns is not None:
        return hints.read(function.returns, file.qualified, file.kind_of_class_named).value
    if function.name in _OFTEN_OVERRIDDEN or not _keeps_the_result(file, function):
        return UNKNOWN_VALUE
    if file.tree.outermost_function_of(function) is not function:
        return UNKNOWN_VALUE
    returns = any(each.value is not None for each in file.tree.nodes(ast.Return, function))
    return None if returns or file.tree.nodes(ast.Yield, function) else UNKNOWN_VALUE


def given_back(flow: Flow) -> Value:
    """The result of a function that was run; unknown if it returns different things."""
    if flow.yields:
        return holding(contents_of([joined(flow.yields)]))
    values = [value for _, value in flow.returns]
    if not values or all(each.constant is None for each in values):
        return UNKNOWN_VALUE
    found = joined(values)
    sure = all(each.sure for each in values)
    if not (found.kinds or found.cls):
        return UNKNOWN_VALUE
    return Value(found.kinds, sure=sure, cls=found.cls, owner=Owner.HERE, contents=found.contents)


def _keeps_the_result(file: ProjectFile, function: FunctionNode) -> bool:
    """Its decorators, if any, give back what the function returns."""
    return all(
        file.qualified(each.func if isinstance(each, ast.Call) else each) in _KEEP_THE_RESULT
        for each in function.decorator_list
    )


def method_of(file: ProjectFile, cls: str, name: str) -> Place | None:
    """The method of that name of a class, own or inherited."""
    facts = file.class_facts(cls)
    if facts is None or name not in facts.methods:
        return None
    for each in (cls, *facts.bases[:_ANCESTORS]):
        own = file.class_facts(each)
        if own is None or not own.file:
            continue
        place = file.project.named_in(file, own.file, f"{own.name}.{name}", SCOPES)
        if place is not None:
            return place
    return None
