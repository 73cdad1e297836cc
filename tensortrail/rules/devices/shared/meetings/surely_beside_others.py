"""Whether a tensor that is made without a device surely has to lie where others are."""

from __future__ import annotations

import ast

from tensortrail.patterns import pattern
from tensortrail.rules import Module
from tensortrail.rules.devices.shared.meetings.beside_others import Evidence, follows
from tensortrail.rules.devices.shared.meetings.company import is_operation
from tensortrail.rules.devices.shared.meetings.other_factories import (
    is_one_of_many,
)
from tensortrail.rules.devices.shared.meetings.returned_or_filled import is_filled
from tensortrail.rules.devices.shared.written_for.beforehand import is_beforehand
from tensortrail.rules.devices.shared.written_for.device_aware import is_in_module
from tensortrail.rules.devices.shared.written_for.device_choices import leads_to_a_gpu
from tensortrail.rules.devices.shared.written_for.device_of_answer import answers_elsewhere
from tensortrail.rules.places import Where
from tensortrail.rules.shared.named_for_cpu import is_named_for_the_cpu
from tensortrail.rules.view import FunctionNode

_CPU_CHOSEN = pattern(r"device|cuda|cpu|gpu|meta|trac|proxy|jit")
"""The first of these: a tensor whose dtype is taken is there."""
_INDEX = pattern(r"(^|_)(index|indexes|indices|idx)\d*$")
_ENOUGH = 2
"""Other factories that are given a device, for one whose tensor is only passed on."""


def is_for_the_cpu(module: Module, function: FunctionNode, call: ast.Call) -> bool:
    asked = [each for each in module.guards_of(call) if not leads_to_a_gpu(each)]
    if any(_CPU_CHOSEN.search(each.text) for each in asked):
        return True
    return is_beforehand(module, function) or is_named_for_the_cpu(module, call)


def is_sure(module: Module, function: FunctionNode, call: ast.Call, why: Evidence) -> bool:
    """Something beside the one tensor says that the function works on other devices too, or
    torch takes the two together. A function that is passed both may move one: there it takes two
    other factories, or one and a tensor that was put on a device."""
    if is_beforehand(module, function) or is_named_for_the_cpu(module, call):
        return False
    if _meets_the_cpu(module, function, call):
        return False
    if why.beside is not None and answers_elsewhere(module, function):
        return False
    if _is_only_passed(module, function, why):
        if _is_an_index(module, call):
            return False
        placed = why.beside is not None and why.beside[1].where is Where.DEVICE
        return len(why.others) >= (1 if placed else _ENOUGH)
    if why.others:
        return True
    if not is_in_module(module, call):
        return False  # only the callers of the function know where the one tensor is
    if why.beside is None and not why.is_typed and not is_filled(module, function, call):
        return False
    return follows(module, function, why.model) or (
        _meets_its_model(module, function, why) and not is_one_of_many(module, function, call)
    )


def _meets_the_cpu(module: Module, function: FunctionNode, call: ast.Call) -> bool:
    """`(ids == -1) & (scores > low).cpu()`: the function knows where it is."""
    return any(
        odd.only is not None
        and odd.only.by is call
        and other.only is not None
        and (other.only.where, other.only.subject) == (Where.LITERAL, "cpu")
        for meeting in module.places(function).meetings
        for odd, other in meeting.pairs
    )


def _is_an_index(module: Module, call: ast.Call) -> bool:
    """By the name it is bound to: an index may lie on the CPU."""
    statement = module.statement_of(call)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    return isinstance(target, ast.Name) and bool(_INDEX.search(target.id))


def _is_only_passed(module: Module, function: FunctionNode, why: Evidence) -> bool:
    if why.beside is None:
        return False
    node = why.beside[0]
    if isinstance(node, ast.Call) and is_operation(module, node):
        return False
    return not any(each.node is node for each in module.places(function).meetings)


def _meets_its_model(module: Module, function: FunctionNode, why: Evidence) -> bool:
    """`torch.cat([x, torch.zeros(n, dtype=x.dtype)])`: whoever passes `x` decides alone."""
    if why.model is None or why.beside is None or not why.is_typed:
        return False
    node, there = why.beside
    name = module.qualified(node.func) if isinstance(node, ast.Call) else "torch."
    held = module.places(function).seen.get(why.model)
    own = {each.subject for each in held.places} if held is not None else set()
    return name.startswith("torch.") and there.subject in own and there.where is Where.OF


def may_fail(module: Module, function: FunctionNode, call: ast.Call, why: Evidence) -> bool:
    """Code that takes the two together, and is not for the CPU."""
    if why.beside is None or _is_an_index(module, call) or _meets_the_cpu(module, function, call):
        return False
    for_the_cpu = is_beforehand(module, function) or is_named_for_the_cpu(module, call)
    return not (for_the_cpu or answers_elsewhere(module, function))
