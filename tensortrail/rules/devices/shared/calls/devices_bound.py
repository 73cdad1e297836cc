"""Which variable or attribute of a function is a device at a call."""

from __future__ import annotations

import ast

from tensortrail.rules import Module
from tensortrail.rules.devices.shared.named.named_gpus import is_cuda_literal
from tensortrail.rules.devices.shared.named.own_devices import own_device
from tensortrail.rules.devices.shared.written_for.device_aware import sets_up
from tensortrail.rules.shared.functions import is_static
from tensortrail.rules.shared.given_devices import is_used_as_device
from tensortrail.rules.shared.objects import is_before
from tensortrail.rules.view import FunctionNode
from tensortrail.rules.words import NOT_CONSTANT, Kind


def device_of_self(module: Module, function: FunctionNode) -> str:
    """`self.device`, if the class has it as a property, or puts something there."""
    cls = module.parent(function)
    if not isinstance(cls, ast.ClassDef) or sets_up(function) or is_static(function):
        return ""
    facts = module.class_facts(cls)
    is_property = facts is not None and "device" in facts.methods
    own = None if is_property else own_device(module, function)
    return "self.device" if is_property or (own is not None and own.attr == "device") else ""


def bound_devices(module: Module, function: FunctionNode) -> list[tuple[str, ast.Assign]]:
    """Where the function binds a variable that is a device: `device`, or the only one that is
    chosen and then used as one."""
    found = [
        (target.id, each)
        for each in module.nodes(ast.Assign, function)
        for target in each.targets
        if isinstance(target, ast.Name) and _is_device(module, target, each.value)
    ]
    names = {name for name, _ in found}
    meant = "device" if "device" in names else next(iter(names), "") if len(names) == 1 else ""
    return [(name, each) for name, each in found if name == meant]


def _is_device(module: Module, target: ast.Name, made: ast.expr) -> bool:
    if target.id == "device":
        return True
    if not is_used_as_device(module, target):
        return False  # before the function is run
    value = module.value_of(made)
    chosen = value.constant is NOT_CONSTANT and value.is_only(Kind.DEVICE, Kind.DEVICE_STRING)
    return bool(value.kinds) and chosen


def known_device(module: Module, bound: list[tuple[str, ast.Assign]], call: ast.Call) -> str:
    """The name, if it is bound before the call and is no GPU by its text."""
    before = [(name, each.value) for name, each in bound if is_before(each, call)]
    known = before and not any(is_cuda_literal(module, value) for _, value in before)
    return before[0][0] if known else ""
