"""Whether a function is written for tensors of any device, by what it does with devices."""

from __future__ import annotations

import ast

from tensortrail.rules.devices.shared.named.devices_said import (
    device_parameter,
    device_read,
    devices_said,
)
from tensortrail.rules.devices.shared.written_for.preparing import prepares
from tensortrail.rules.shared.functions import names_of_parameters
from tensortrail.rules.shared.objects import file_around
from tensortrail.rules.view import FunctionNode, Module
from tensortrail.rules.words import Kind

FORWARD = frozenset({"forward"})
_RUN_BY_AUTOGRAD = frozenset({"forward", "backward"})
_SETS_UP = frozenset(
    "__init__ __new__ __post_init__ __init_subclass__ reset_parameters _reset_parameters "
    "init_weights _init_weights initialize_weights setup build post_init".split()
)


def sets_up(function: FunctionNode) -> bool:
    """While an object is set up, its parameters are on the default device too."""
    return function.name in _SETS_UP


def is_forward(module: Module, function: FunctionNode) -> bool:
    cls = module.parent(function)
    if function.name not in _RUN_BY_AUTOGRAD or not isinstance(cls, ast.ClassDef):
        return False
    if any(module.qualified(base) == "torch.autograd.Function" for base in cls.bases):
        return True
    facts = module.class_facts(cls)
    return function.name in FORWARD and facts is not None and facts.is_module


def is_of_module(module: Module, function: FunctionNode) -> bool:
    """A method of a module: what it is given is mostly where the weights are."""
    cls = module.parent(function)
    if not isinstance(cls, ast.ClassDef) or function.decorator_list:
        return False
    if prepares(module, function):
        return False
    facts = module.class_facts(cls)
    return facts is not None and facts.is_module


def is_in_module(module: Module, node: ast.AST) -> bool:
    """It stands in the class of a module."""
    cls = module.class_of(node)
    facts = module.class_facts(cls) if cls is not None else None
    return facts is not None and facts.is_module


def makes_on_devices(module: Module, function: FunctionNode) -> bool:
    """The function makes another tensor where one of its arguments is, or on a device of the
    caller: all it is given may be on a GPU. A function that is given a device beside the tensors
    may prepare on the CPU what it moves at the end: it must move nothing there."""
    return module.once(_makes_on_devices, function)


def is_in_a_file_of_devices(module: Module, function: FunctionNode) -> bool:
    """The file asks tensors where they are: what it is given need not be on the CPU."""
    return module.once(_asks_tensors, file_around(module, function))


def _asks_tensors(module: Module, file: ast.AST) -> bool:
    """`x.device` of a name that is no object with a device of its own choice."""
    return any(
        isinstance(each.value, ast.Name)
        and each.value.id != "self"
        and module.value_of(each.value).is_only(Kind.TENSOR, Kind.PARAMETER)
        for each in device_read(module, file)
    )


def _makes_on_devices(module: Module, function: FunctionNode) -> bool:
    said = devices_said(module, function)
    if device_parameter(module, function) is None:
        return any(_is_of_argument(device, function) for _, device in said)
    own = [call for call, device in said if _is_device_argument(device, function)]
    return bool(own) and all(_is_made(call) for call in own)


def _is_made(call: ast.Call) -> bool:
    return any(each.arg == "device" for each in call.keywords)


def _is_of_argument(said: ast.expr, function: FunctionNode) -> bool:
    """`x.device` of an argument `x`."""
    owner = said.value if isinstance(said, ast.Attribute) and said.attr == "device" else None
    return isinstance(owner, ast.Name) and owner.id in names_of_parameters(function) - {"self"}


def _is_device_argument(said: ast.expr, function: FunctionNode) -> bool:
    return isinstance(said, ast.Name) and said.id in names_of_parameters(function)
