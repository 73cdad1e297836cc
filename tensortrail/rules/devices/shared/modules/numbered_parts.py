"""Classes that put their modules on several GPUs, and where the tensors between them lie."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.shared.moves import MOVES, TO_DEVICE
from tensortrail.rules.shared.objects import called, given, is_self, receiver
from tensortrail.rules.shared.tensor_methods import JOINING, REDUCING, SAME_DEVICE
from tensortrail.rules.view import FunctionNode, Module

_DEPTH = 8
_KEEP = SAME_DEVICE | REDUCING


class Part(NamedTuple):
    device: str
    """`"cuda:0"`, or the variable that says it."""
    moved: ast.Call


class Crossed(NamedTuple):
    call: ast.expr
    """What takes a tensor that lies on another GPU."""
    lies: Part
    taken: Part


def crossed(module: Module, cls: ast.ClassDef) -> Iterator[Crossed]:
    """Calls of a part with what another part gave, and operations with results of two parts."""
    parts = _parts(module, cls)
    if len({each.device for each in parts.values()}) < 2:
        return
    for method in cls.body:
        if isinstance(method, ast.FunctionDef) and method.name != "__init__":
            yield from _crossed_in(module, method, parts)


def _crossed_in(module: Module, method: FunctionNode, parts: dict[str, Part]) -> Iterator[Crossed]:
    for call in module.nodes(ast.Call, method):
        taken = _part_called(call, parts)
        if taken is not None:
            there = [p for each in given(call) if (p := _lies(module, each, parts)) is not None]
        else:
            joins = called(call) in JOINING and module.qualified(call.func).startswith("torch.")
            members = call.args[0] if joins and call.args else None
            each = members.elts if isinstance(members, (ast.List, ast.Tuple)) else []
            there = [p for e in each if (p := _lies(module, e, parts)) is not None]
            taken = there[0] if there else None
        odd = next((p for p in there if taken is not None and p.device != taken.device), None)
        if taken is not None and odd is not None:
            yield Crossed(call, odd, taken)
    for sum_ in module.nodes(ast.BinOp, method):
        left, right = _lies(module, sum_.left, parts), _lies(module, sum_.right, parts)
        if left is not None and right is not None and left.device != right.device:
            yield Crossed(sum_, right, left)


def _parts(module: Module, cls: ast.ClassDef) -> dict[str, Part]:
    """`self.first = nn.Linear(4, 4).to("cuda:0")` and `self.first.to(0)` of the constructor: the
    attributes that are put on one GPU there, and nowhere else."""
    found: dict[str, list[Part]] = {}
    kept = _kept(module, cls)
    for move in module.calls(*TO_DEVICE, inside=cls):
        device = _device(module, next(iter(given(move)), None), kept)
        name = _attribute_moved(module, move)
        function = module.function_of(move)
        if name and device and function is not None:
            found.setdefault(name, []).append(Part(device, move))
    return {name: parts[0] for name, parts in found.items() if len(parts) == 1}


def _attribute_moved(module: Module, move: ast.Call) -> str:
    owner, statement = receiver(move), module.parent(move)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        owner = statement.targets[0]
    if isinstance(owner, ast.Attribute) and is_self(owner.value):
        return owner.attr
    return ""


def _kept(module: Module, cls: ast.ClassDef) -> dict[str, str]:
    """`first` for `self.dev0`, after `self.dev0 = first`."""
    stored: dict[str, str] = {}
    for assign in module.nodes(ast.Assign, cls):
        target = assign.targets[0]
        if isinstance(target, ast.Attribute) and is_self(target.value):
            stored[module.text(target)] = module.text(assign.value)
    return stored


def _device(module: Module, said: ast.expr | None, kept: dict[str, str]) -> str:
    """The GPU by its number, or by the name that says it; "" where that is not known."""
    if said is None:
        return ""
    value = module.value_of(said).constant
    if isinstance(value, int) and not isinstance(value, bool):
        return f"cuda:{value}"
    if isinstance(value, str):
        return value if ":" in value else ""
    if isinstance(said, ast.Call) and module.qualified(said.func) == "torch.device":
        return _device(module, next(iter(said.args), None), kept) if len(said.args) == 1 else ""
    text = module.text(said)
    return kept.get(text, text) if isinstance(said, (ast.Name, ast.Attribute)) else ""


def _part_called(call: ast.Call, parts: dict[str, Part]) -> Part | None:
    func = call.func
    own = isinstance(func, ast.Attribute) and is_self(func.value)
    return parts.get(func.attr) if own and isinstance(func, ast.Attribute) else None


def _lies(
    module: Module, node: ast.expr, parts: dict[str, Part], depth: int = _DEPTH
) -> Part | None:
    """Where a tensor of the method lies, if a part gave it and nothing has moved it since."""
    if not depth:
        return None
    if isinstance(node, ast.Name):
        found = [
            _lies(module, each, parts, depth - 1) if isinstance(each, ast.expr) else None
            for each in module.value_of(node).origins
        ]
        devices = {each.device for each in found if each is not None}
        return found[0] if found and None not in found and len(devices) == 1 else None
    if not isinstance(node, ast.Call):
        return None
    part = _part_called(node, parts)
    if part is not None:
        return part
    if called(node) in MOVES:
        return None
    first = receiver(node) if called(node) in _KEEP else None
    if module.qualified(node.func).startswith("torch."):
        first = next(iter(node.args), None)
    return _lies(module, first, parts, depth - 1) if first is not None else None
