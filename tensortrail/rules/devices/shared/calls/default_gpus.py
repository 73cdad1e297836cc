"""Calls whose `device` is a GPU if it is left out, and whether that may be meant."""

from __future__ import annotations

import ast

from tensortrail.rules import Module
from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.devices.shared.calls.accepted import accepts
from tensortrail.rules.devices.shared.calls.customs import may_be_given_anything, named
from tensortrail.rules.devices.shared.modules.dispatched import ENABLING
from tensortrail.rules.devices.shared.named.devices_said import device_parameter, devices_said
from tensortrail.rules.devices.shared.named.named_gpus import is_cuda_literal
from tensortrail.rules.devices.shared.named.only_asked import (
    only_asks_about_device,
    reads_device_on_request,
)
from tensortrail.rules.shared.never_given import is_chosen_somewhere
from tensortrail.rules.shared.objects import called
from tensortrail.rules.view import FunctionNode


def only_asks(module: Module, call: ast.Call) -> bool:
    """The function asks what the GPU can do, and no other call of the project tells it which."""
    asks = module.about(module.qualified(call.func), only_asks_about_device) is True
    return asks and not any(
        "device" in each.given | each.written for each in module.calls_in_project(call)
    )


def may_not_be_read(module: Module, call: ast.Call) -> bool:
    """The function needs the device for something that it may not be asked for here."""
    return module.about(_callee(module, call), reads_device_on_request) is True


def may_lack_a_gpu(module: Module, call: ast.Call) -> bool:
    """The file asks whether there is a GPU, or a pipeline is offloaded to what it computes on."""
    return called(call) in ENABLING or any(
        True for _ in module.calls("torch.cuda.is_available", "torch.backends.mps.is_available")
    )


def offloads_again(function: FunctionNode, call: ast.Call) -> bool:
    """No part of a function that offloads, which has to pass the device on."""
    return called(call) in ENABLING and function.name not in ENABLING


def _callee(module: Module, call: ast.Call) -> str:
    """Its dotted name: of `self.f()` that of the method, of `self()` that of `forward`."""
    cls, func = module.class_of(call), call.func
    if cls is not None and module.text(func) == "self":
        return f"{cls.name}.forward"
    if cls is not None and isinstance(func, ast.Attribute) and module.text(func.value) == "self":
        return f"{cls.name}.{func.attr}"
    return module.qualified(func)


def is_a_gpu_too(module: Module, function: FunctionNode) -> bool:
    """The device at hand is a GPU by default as well, and no caller is known to choose one."""
    parameter = device_parameter(module, function)
    owner = function if parameter is not None else None
    while owner is not None:
        for each, default in with_defaults(owner.args):
            if each is parameter:
                is_gpu = is_cuda_literal(module, default)
                return is_gpu and not is_chosen_somewhere(module, owner, each.arg)
        owner = module.function_of(owner)
    return False


def needs_a_gpu(module: Module) -> bool:
    """The file puts something on a GPU that it writes out, whatever its variable `device` says."""
    written = [
        call for call, said in devices_said(module, module.top) if is_cuda_literal(module, said)
    ]
    written += [each for each in module.calls("cuda") if not each.args]
    return any(
        not any(guard.mentions("cuda", "gpu", "device") for guard in module.guards_of(each))
        for each in written
    )


def takes_a_gpu(module: Module, call: ast.Call) -> bool:
    if (
        "device" in named(call)
        or may_be_given_anything(call)
        or not accepts(module, call, "device")
    ):
        return False
    return "device" in module.gpu_defaults_of(call) and not any(
        guard.mentions("cuda", "gpu", "device") for guard in module.guards_of(call)
    )


def is_out_of_place(call: ast.Call, at_hand: str) -> bool:
    """It is given, in the place of another parameter."""
    return at_hand in map(ast.unparse, call.args)
