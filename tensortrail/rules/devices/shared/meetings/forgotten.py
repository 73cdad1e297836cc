"""Whether a tensor that is not put on a device, as its siblings are, may be forgotten."""

from __future__ import annotations

import ast
import re

from tensortrail.rules import Module
from tensortrail.rules.devices.shared.calls.customs import named
from tensortrail.rules.devices.shared.meetings.other_factories import may_be_given_a_device
from tensortrail.rules.devices.shared.meetings.same_way import Kind
from tensortrail.rules.devices.shared.meetings.siblings import Sibling
from tensortrail.rules.devices.shared.written_for.beforehand import is_beforehand
from tensortrail.rules.devices.shared.written_for.device_aware import sets_up
from tensortrail.rules.shared.functions import parameter_names
from tensortrail.rules.shared.moves import TO_DEVICE
from tensortrail.rules.shared.named_for_cpu import is_named_for_the_cpu
from tensortrail.rules.shared.objects import called
from tensortrail.rules.view import FunctionNode

_CHOSEN = re.compile(
    r"device|cuda|cpu|gpu|meta|isinstance|is_tensor|numpy|\bnp\b|trac|proxy|jit|captur"
)
"""Words of conditions under which the CPU is meant."""
_ELSEWHERE = frozenset({"pin_memory", "out", "generator"})
"""Arguments that say where the tensor lies, or who makes it."""
_SIZED = ("torch.zeros", "torch.ones", "torch.empty", "torch.full")


def is_surely_forgotten(module: Module, sibling: Sibling) -> bool:
    """A function that takes both may move one, and an object may keep one where it is."""
    if sibling.kind is Kind.ATTRIBUTES:
        return False
    if sibling.kind is not Kind.ONE_CALL or not isinstance(sibling.taken, ast.Call):
        return True
    return module.qualified(sibling.taken.func).startswith("torch.")


def may_be_forgotten(module: Module, function: FunctionNode, call: ast.Call) -> bool:
    if not may_be_given_a_device(module, call) or _ELSEWHERE & named(call):
        return False
    if sets_up(function) and not any("device" in each for each in parameter_names(function)):
        return False
    if any(isinstance(each, ast.IfExp) for each in module.ancestors(call)):
        return False
    if _is_moved_with_all(module, call) or is_named_for_the_cpu(module, call):
        return False
    if _is_a_size(module, function, call):
        return False
    if any(_CHOSEN.search(each.text) for each in module.guards_of(call)):
        return False
    return not is_beforehand(module, call) and not _holds_nothing(call)


def _is_a_size(module: Module, function: FunctionNode, call: ast.Call) -> bool:
    """`counts = torch.tensor([8])`, then `torch.zeros((counts,))`: sizes are read on the CPU."""
    statement = module.statement_of(call)
    if not isinstance(statement, ast.Assign) or statement.value is not call:
        return False
    names = {each.id for each in statement.targets if isinstance(each, ast.Name)}
    return any(
        isinstance(each, ast.Name) and each.id in names
        for factory in module.calls(*_SIZED, inside=function)
        for size in factory.args[:1]
        for each in (size.elts if isinstance(size, ast.Tuple) else [size])
    )


def _is_moved_with_all(module: Module, call: ast.Call) -> bool:
    """`Parts(first, torch.ones(3)).to(device)`."""
    moved = (each for each in module.ancestors(call) if isinstance(each, ast.Attribute))
    return any(each.attr in TO_DEVICE for each in moved)


def _holds_nothing(call: ast.Call) -> bool:
    """`torch.empty(0)` and `torch.Tensor()` stand for a tensor that is not there."""
    if not call.args and not call.keywords:
        return called(call).endswith("Tensor")
    size = call.args[0] if len(call.args) == 1 else None
    return isinstance(size, ast.Constant) and size.value == 0 and called(call) == "empty"
