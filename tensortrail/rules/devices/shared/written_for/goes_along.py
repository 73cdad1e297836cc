"""Whether what a function is given lies on a device that its callers choose."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.devices.shared.written_for.callers import caller_on_a_device
from tensortrail.rules.devices.shared.written_for.device_aware import (
    FORWARD,
    is_forward,
    is_in_a_file_of_devices,
    is_of_module,
    makes_on_devices,
    sets_up,
)
from tensortrail.rules.devices.shared.written_for.preparing import prepares
from tensortrail.rules.places import INDEX, ON_CPU_UNLESS_ASKED, Held, Place, What, Where
from tensortrail.rules.shared.functions import is_property
from tensortrail.rules.view import FunctionNode, Module

_NEW = frozenset("new_zeros new_ones new_empty new_full new_tensor".split())


def only_sets_up(module: Module, method: FunctionNode) -> bool:
    """It sets an object up, or is called in the file by what does alone: `_output_size(shape)`."""
    if sets_up(method):
        return True
    if not isinstance(module.parent(method), ast.ClassDef) or method.name in FORWARD:
        return False
    callers = [module.function_of(each) for each in _uses(module, method)]
    return bool(callers) and all(each is not None and sets_up(each) for each in callers)


def _uses(module: Module, method: FunctionNode) -> Iterator[ast.expr]:
    """Its calls in the file; of a property, where it is read."""
    if is_property(method):
        return (each for each in module.nodes(ast.Attribute) if each.attr == method.name)
    return module.calls(method.name)


def goes_along(
    module: Module, function: FunctionNode, subject: str, depth: int = 3, strict: bool = False
) -> bool:
    """Callers pass what lies on a device of their choice, as far as can be seen."""
    if is_forward(module, function) or _asks_for_the_device(module, function, subject):
        return True
    if prepares(module, function):
        return False
    meant = is_of_module(module, function) and not sets_up(function)
    meant = meant or makes_on_devices(module, function)
    meant = meant or (not strict and is_in_a_file_of_devices(module, function))
    if meant and not is_passed_from_the_cpu(module, function, subject):
        return True
    if _meets_what_follows(module, function, subject):
        return True
    if caller_on_a_device(module, function, subject) is not None:
        return True
    return depth > 0 and _is_passed_along(module, function, subject, depth - 1)


def _asks_for_the_device(module: Module, function: FunctionNode, subject: str) -> bool:
    """The function puts something else on the device of the same argument: by `x.device`, or by
    `x.new_zeros(n)`."""
    return any(
        (node.attr == "device" or node.attr in _NEW)
        and ast.unparse(node.value) == subject
        and isinstance(module.parent(node), (ast.keyword, ast.Call, ast.Assign))
        for node in module.nodes(ast.Attribute, function)
    )


def _meets_what_follows(module: Module, function: FunctionNode, subject: str) -> bool:
    """The function takes it together with parameters of the module, or with what it has put on
    a device: it lies there, or the function fails for everybody."""
    if sets_up(function):
        return False
    for meeting in module.places(function).meetings:
        for held, other in meeting.pairs:
            one, there = held.only, other.only
            if one is None or there is None or meeting.operation == INDEX:
                continue
            if one.where is Where.OF and one.subject == subject and not there.given:
                sure = there.where in (Where.SELF, Where.DEVICE)
                if sure and other.what is What.TENSOR and not other.may_be_scalar:
                    return True
    return False


def is_passed_from_the_cpu(
    module: Module, function: FunctionNode, subject: str, depth: int = 2
) -> bool:
    """A caller in this file passes what was made on the CPU or kept where it was made, or hands on
    what its callers do."""
    passed = module.passed(function, subject.partition(".")[0].partition("[")[0])
    for caller, held in passed:
        for place in _places_in(held):
            if place.where in ON_CPU_UNLESS_ASKED or place.subject == "cpu":
                return True
            on = depth > 0 and place.where is Where.OF and caller is not function
            if on and is_passed_from_the_cpu(module, caller, place.subject, depth - 1):
                return True
    return False


def _places_in(held: Held) -> Iterator[Place]:
    """Those of the tensor, or of the members that a list or mapping was written out with."""
    yield from held.in_order
    for each in held.parts or ():
        yield from each.in_order


def _is_passed_along(module: Module, function: FunctionNode, subject: str, depth: int) -> bool:
    """Every caller in this file passes a tensor that follows a device."""
    passed = module.passed(function, subject.partition(".")[0].partition("[")[0])
    sure = [(caller, held) for caller, held in passed if held.what is not What.NONE]
    return bool(sure) and all(
        bool(held.places) and all(_comes_along(module, caller, each, depth) for each in held.places)
        for caller, held in sure
    )


def _comes_along(module: Module, caller: FunctionNode, place: Place, depth: int) -> bool:
    if place.where is Where.OF:
        return goes_along(module, caller, place.subject, depth)
    if place.where is Where.LITERAL:
        return place.subject != "cpu"
    return place.where is Where.DEVICE or (place.where is Where.SELF and not sets_up(caller))
