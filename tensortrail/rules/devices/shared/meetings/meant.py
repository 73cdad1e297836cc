"""Whether a tensor that was given no device may be meant for the CPU, by what it meets."""

from __future__ import annotations

import ast

from tensortrail.patterns import pattern
from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.devices.shared.calls.explained import is_followed_by
from tensortrail.rules.devices.shared.meetings.following import is_only_believed
from tensortrail.rules.devices.shared.written_for.beforehand import is_beforehand
from tensortrail.rules.devices.shared.written_for.callers import caller_on_a_device
from tensortrail.rules.devices.shared.written_for.device_aware import is_in_module, is_of_module
from tensortrail.rules.devices.shared.written_for.device_of_answer import answers_elsewhere
from tensortrail.rules.places import Meeting, Place, Where
from tensortrail.rules.shared.moves import TO_DEVICE, named_device
from tensortrail.rules.shared.never_given import is_given_somewhere
from tensortrail.rules.shared.placeholders import stands_for_nothing
from tensortrail.rules.view import FunctionNode, Module

_TRACED = pattern(r"proxy|trac(ing|ed)|onnx|export")
"""Words of conditions under which no tensor is computed with, or on the CPU."""


def may_be_meant(module: Module, function: FunctionNode, meeting: Meeting, there: Place) -> bool:
    """What it meets may be on the CPU too, by what the code around says."""
    if is_only_believed(module, function, there) or is_beforehand(module, function):
        return True
    if any(_TRACED.search(each) for each in meeting.conditions):
        return True
    if there.where is not Where.OF:
        return False
    if is_followed_by(module, meeting.node, TO_DEVICE):
        return True  # what needs to be moved was computed elsewhere
    return not is_of_module(module, function) and answers_elsewhere(module, function)


def is_traced(module: Module, node: ast.AST) -> bool:
    """It runs only while a graph is traced, which is done on the CPU as often as not."""
    return any(each.holds and _TRACED.search(each.text) for each in module.guards_of(node))


def is_certain(module: Module, function: FunctionNode, there: Place) -> bool:
    """What it meets follows the weights of a module, or a device that is named or written out:
    where only the caller of a plain function says where things are, all may be on the CPU, unless
    one that is known has them on a device."""
    if _is_the_cpu_unless_given(module, function, there):
        return False
    of_either_kind = there.where is Where.OF and "isinstance" in there.given
    own = is_in_module(module, function) and not of_either_kind  # a list may be meant there
    if names_a_device(there) or there.where is Where.SELF or own:
        return True
    return (
        there.where is Where.OF and caller_on_a_device(module, function, there.subject) is not None
    )


def names_a_device(there: Place) -> bool:
    """The code says which device it is, and not only that it is the one of an argument."""
    own = there.subject.startswith("self.") or not there.subject.endswith(".device")
    return there.where is Where.LITERAL or (there.where is Where.DEVICE and own)


def only_binds_a_name(module: Module, made: Place) -> bool:
    """`torch.empty(0)` or `torch.tensor([0])` of one branch is there so that a name is bound."""
    if not made.given or not isinstance(made.by, ast.Call):
        return False
    if isinstance(module.parent(made.by), ast.Attribute):
        return False  # `torch.tensor([0.0]).repeat(n)` is a value of its own
    return stands_for_nothing(module, made.by)


def _is_the_cpu_unless_given(module: Module, function: FunctionNode, there: Place) -> bool:
    """Its device is a parameter that is the CPU by default, as that of what was made without one
    is, and no call of the project is known to pass another."""
    if there.where is not Where.DEVICE:
        return False
    name = there.subject.removeprefix("self.")
    return any(
        _is_the_cpu_by_default(module, each, name) and not is_given_somewhere(module, each, name)
        for each in (function, _that_sets_up(module, function))
        if each is not None
    )


def _that_sets_up(module: Module, method: FunctionNode) -> FunctionNode | None:
    cls = module.class_of(method)
    body = (each for each in cls.body if isinstance(each, ast.FunctionDef)) if cls else ()
    return next((each for each in body if each.name == "__init__"), None)


def _is_the_cpu_by_default(module: Module, function: FunctionNode, name: str) -> bool:
    found = (
        named_device(module, said) for arg, said in with_defaults(function.args) if arg.arg == name
    )
    return any(isinstance(each, ast.Constant) and each.value == "cpu" for each in found)
