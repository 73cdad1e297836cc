"""Memory that is asked of the current GPU where a device is at hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.devices.shared.named.current_gpu_asked import bare_calls
from tensortrail.rules.devices.shared.named.devices_said import device_parameter
from tensortrail.rules.unchanging import unchanging
from tensortrail.rules.view import FunctionNode, Module

_DECIDES = "mem_get_info"
"""The one that is asked to decide something; the others mostly fill a log."""
_OF_MEMORY = frozenset(
    f"torch.cuda.{name}"
    for name in (
        _DECIDES,
        "memory_stats",
        "memory_allocated",
        "memory_reserved",
        "max_memory_allocated",
        "max_memory_reserved",
        "reset_peak_memory_stats",
    )
)


@unchanging(frozen=True, slots=False)
class Asked:
    """A call that asks the current GPU for its memory."""

    call: ast.Call
    at_hand: ast.AST
    """The device that could be asked instead."""
    by_siblings: bool
    """Other methods of the class ask that one."""


def asks_current_memory(module: Module, function: FunctionNode) -> Iterator[Asked]:
    calls = list(bare_calls(module, function, _OF_MEMORY))
    if not calls or _makes_one_current(module):
        return
    alike = _device_of_siblings(module, function)
    at_hand = alike or device_parameter(module, function) or _kept_here(module, function)
    for call in calls if at_hand is not None else ():
        if at_hand is not None and (alike is not None or _decides(module, call)):
            yield Asked(call, at_hand, alike is not None)


def _decides(module: Module, call: ast.Call) -> bool:
    return module.qualified(call.func).endswith(_DECIDES)


def _device_of_siblings(module: Module, function: FunctionNode) -> ast.Attribute | None:
    """`self.device` of `torch.cuda.memory_stats(self.device)` in the class."""
    cls = module.class_of(function)
    for call in module.calls(*_OF_MEMORY, inside=cls) if cls is not None else ():
        for said in (*call.args, *(each.value for each in call.keywords)):
            if isinstance(said, ast.Attribute) and module.text(said).startswith("self."):
                return said
    return None


def _kept_here(module: Module, function: FunctionNode) -> ast.expr | None:
    """`self.device = choose()` of this function."""
    for assign in module.nodes(ast.Assign, function):
        target = assign.targets[0]
        if module.text(target) == "self.device" and isinstance(assign.value, ast.Call):
            return target
    return None


def _makes_one_current(module: Module) -> bool:
    """The file sets the device, or works inside of `with torch.cuda.device(...)`."""
    if any(each.attr == "set_device" for each in module.nodes(ast.Attribute)):
        return True
    return any(
        module.qualified(call.func) in ("torch.cuda.device", "torch.cuda.device_of")
        for call in module.calls("device", "device_of")
    )
