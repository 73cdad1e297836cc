"""The device that is at hand in a function, to be used instead of one that is written out."""

from __future__ import annotations

import ast

from tensortrail.patterns import pattern
from tensortrail.rules.devices.shared.named.accelerators import (
    accelerator_given,
    accelerator_of_file,
    is_accelerator,
)
from tensortrail.rules.devices.shared.named.devices_said import (
    device_parameter,
    devices_said,
    is_of_library,
)
from tensortrail.rules.devices.shared.named.named_gpus import is_cuda_literal
from tensortrail.rules.devices.shared.named.own_devices import kept_names, own_device, own_launcher
from tensortrail.rules.shared.objects import file_around
from tensortrail.rules.view import FunctionNode, Module


def at_hand_in(module: Module, function: FunctionNode) -> ast.AST | None:
    """What the function can use instead: its parameter, or `accelerator.device`."""
    parameter = device_parameter(module, function)
    if parameter is not None:
        return parameter
    for node in module.nodes(ast.Attribute, function):
        owner = node.value
        if node.attr != "device" or not isinstance(owner, ast.Name):
            continue
        if not is_of_library(module, node) and is_accelerator(module, function, owner):
            return node
    own = own_device(module, function) or accelerator_given(module, function)
    found = own or _mapped_model(module, function) or own_launcher(module, function)
    file = file_around(module, function)
    return found or module.once(accelerator_of_file, file) or module.once(_device_helper, file)


_HELPER = pattern(r"(get_)?((current|local|torch|default|accelerator|compute)_)*device(_name|_id)?")


def _device_helper(module: Module, file: ast.AST) -> ast.Call | None:
    """`get_current_device()` of another file, which this file asks where to put things."""
    imported = {
        alias.asname or alias.name
        for each in module.nodes(ast.ImportFrom)
        for alias in each.names
        if _HELPER.fullmatch(alias.name) and (each.module or "").partition(".")[0] != "torch"
    }
    if not imported:
        return None
    for _, said in devices_said(module, file):
        sources = module.value_of(said).origins if isinstance(said, ast.Name) else (said,)
        for each in sources:
            if isinstance(each, ast.Call) and getattr(each.func, "id", "") in imported:
                return each
    return None


def _mapped_model(module: Module, function: FunctionNode) -> ast.Name | None:
    """`model` of `model = AutoModel.from_pretrained(name, device_map="auto")`."""
    for call in module.calls("from_pretrained", inside=function):
        stored = module.parent(call)
        spread = any(
            each.arg == "device_map"
            and not is_cuda_literal(module, each.value)
            and not isinstance(each.value, ast.Dict)
            for each in call.keywords
        )
        if spread and isinstance(stored, ast.Assign) and isinstance(stored.targets[0], ast.Name):
            return stored.targets[0]
    return None


def shown_device(module: Module, at_hand: ast.AST) -> str:
    if isinstance(at_hand, ast.arg):
        return at_hand.arg
    text, cls = module.text(at_hand), module.class_of(at_hand)
    if isinstance(at_hand, ast.Name):
        return f"{text}.device"
    owner, _, last = text.rpartition(".")
    kept = module.once(kept_names, cls).get(owner) if cls is not None else None
    return f"{kept}.{last}" if kept is not None and last == "device" else text
