"""Whether a file, a function or a class is written for GPUs alone."""

from __future__ import annotations

import ast

from tensortrail.rules import Module
from tensortrail.rules.devices.shared.named.at_hand import at_hand_in
from tensortrail.rules.devices.shared.written_for.device_aware import sets_up
from tensortrail.rules.shared.imports import imported_packages
from tensortrail.rules.shared.moves import TO_DEVICE
from tensortrail.rules.shared.objects import given, is_self, receiver
from tensortrail.rules.view import FunctionNode

_FOR_GPUS = ("triton", "cupy", "pycuda", "cuda", "flash_attn", "apex")
"""Packages of which code that imports them runs on GPUs only."""


def is_for_gpus(module: Module) -> bool:
    """The file imports what only GPUs have, or insists on one."""
    if not imported_packages(module).isdisjoint(_FOR_GPUS):
        return True
    return any("cuda" in module.text(each.test) for each in module.nodes(ast.Assert))


def has_another_say(module: Module, function: FunctionNode) -> bool:
    """Another device is at hand, or collectives run on GPUs here."""
    if at_hand_in(module, function) is not None:
        return True
    return any(
        module.qualified(call.func).startswith("torch.distributed.")
        for call in module.nodes(ast.Call, function)
    )


def spreads_its_parts(module: Module, function: FunctionNode) -> bool:
    """The class puts its own modules on GPUs that it numbers: what it calls them with has to go
    where each of them is."""
    cls = module.class_of(function)
    moves = module.calls(*TO_DEVICE, inside=cls) if cls is not None else ()
    return any(
        isinstance(said := next(iter(given(each)), None), ast.Constant)
        and (isinstance(said.value, int) or ":" in str(said.value))
        and (around := module.function_of(each)) is not None
        and (sets_up(around) or _is_of_self(each))
        for each in moves
    )


def _is_of_self(move: ast.Call) -> bool:
    """`self.head.to("cuda:1")`."""
    owner = receiver(move)
    return isinstance(owner, ast.Attribute) and is_self(owner.value)
