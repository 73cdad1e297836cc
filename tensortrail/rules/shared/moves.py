"""Methods that move a tensor or a module, and whether one moves it to the CPU."""

from __future__ import annotations

import ast
from typing import Protocol

from tensortrail.rules.words import Value

ACCELERATORS = frozenset({"cuda", "xpu", "npu", "hpu"})
"""Methods that are called as the device they move to."""
TO_DEVICE = ACCELERATORS | {"to"}
"""What puts a tensor or a module on a device that is asked for."""
MOVES = TO_DEVICE | {"cpu"}
"""What moves a tensor or a module, to the CPU too."""
MODULE_TO_DEVICE = TO_DEVICE | {"to_empty"}
"""What puts a module on a device, its values with it or not."""
MODULE_MOVES = MOVES | {"to_empty"}
"""What moves a module, to the CPU too."""
MAY_PLACE = MODULE_TO_DEVICE | {"_apply", "prepare", "dispatch_model"}
"""What may have put a module on a device: by a function that it is given, or as launchers do."""
MOVE_METHODS = MOVES | {"_apply"}
"""What a module defines that has something of its own to move."""
MOVERS = MOVE_METHODS | {"to_device", "move_to", "move_to_device"}
"""The same of any object."""
OFFLOADS = MOVES | {"offload", "onload", "unload"}
"""Also as libraries call it to move something away and back."""
CASTS = frozenset({"half", "bfloat16", "double"})
"""What gives other memory than most tensors have: `float` is what they are already."""
TO_DTYPE = CASTS | {"to", "float", "int", "long", "bool", "type"}
"""What may give a tensor another dtype."""
GIVES_ITSELF = MODULE_MOVES | CASTS | {"float", "type", "train", "eval", "requires_grad_"}
"""What a module has done and gives itself: `model = Net().eval().to(device)`."""


class Readable(Protocol):
    """A file that says what names stand for."""

    def qualified(self, node: ast.AST) -> str: ...
    def value_of(self, node: ast.expr) -> Value: ...


def moves_to_cpu(file: Readable, call: ast.Call) -> bool:
    """`x.cpu()`, and `x.to(...)` with the CPU as its device, however that is spelled."""
    if not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr == "cpu":
        return not call.args
    told = told_of(call) if call.func.attr == "to" else None
    return told is not None and is_cpu(file, told)


def told_of(call: ast.Call) -> ast.expr | None:
    """`d` of `x.to(d)`, `x.to(torch.half, device=d)`; it may be a dtype."""
    named = (each.value for each in call.keywords if each.arg == "device")
    return next(named, call.args[0] if call.args else None)


def is_cpu(file: Readable, device: ast.expr) -> bool:
    """`"cpu"`, `torch.device("cpu")`, or a name that stands for one of them."""
    said = file.value_of(named_device(file, device)).constant
    return isinstance(said, str) and said.partition(":")[0] == "cpu"


def named_device(file: Readable, node: ast.expr) -> ast.expr:
    """`"cuda"` of `torch.device("cuda")`."""
    if not isinstance(node, ast.Call) or file.qualified(node.func) != "torch.device":
        return node
    named = (each.value for each in node.keywords if each.arg == "type")
    return node.args[0] if node.args else next(named, node)
