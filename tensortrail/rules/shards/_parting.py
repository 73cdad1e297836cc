"""The condition under which only some processes come to a call."""

from __future__ import annotations

import ast

from tensortrail.rules import Guard, Module
from tensortrail.rules.shards._answered import (
    answers_otherwise,
    ends_in_an_error,
    is_answered_by_a_worker,
    is_answered_by_callee,
    is_answered_elsewhere,
    is_in_another_case,
    only_receives,
)
from tensortrail.rules.shared.functions import outermost_function
from tensortrail.rules.shared.ranks import asks_for_rank


def parting_condition(module: Module, call: ast.Call) -> Guard | None:
    """The condition about the rank under which the call stands, unless others make it as well."""
    name = module.text(call.func)
    around = outermost_function(module, call)  # a closure may answer what stands beside it
    twins = [each for each in module.nodes(ast.Call, around) if each is not call]
    others = [each for each in twins if module.text(each.func) == name]
    for guard in module.guards_of(call):
        if not asks_for_rank(module, guard.test) or ends_in_an_error(module, call, guard):
            continue
        if only_receives(module, call, guard):
            continue
        opposite = any(answers_otherwise(module, each, guard) for each in others)
        opposite = opposite or is_answered_elsewhere(module, call, guard)
        opposite = opposite or is_answered_by_callee(module, call, guard)
        opposite = opposite or is_answered_by_a_worker(module, call)
        return None if opposite or is_in_another_case(module, call, others) else guard
    return None
