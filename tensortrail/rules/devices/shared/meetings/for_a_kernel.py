"""Tensors on the current GPU that a kernel takes together with an argument of the function."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tensortrail.rules.devices.shared.meetings.launches import may_choose
from tensortrail.rules.devices.shared.named.current_gpu import written
from tensortrail.rules.devices.shared.named.decided_by import decided
from tensortrail.rules.devices.shared.named.named_gpus import is_bound_around
from tensortrail.rules.devices.shared.written_for.makers import outermost
from tensortrail.rules.places import KERNEL, Held, Place, What, Where
from tensortrail.rules.shared.objects import given, is_self_or_cls, root_of
from tensortrail.rules.view import FunctionNode, Module

TYPES = "FloatTensor LongTensor IntTensor BoolTensor ByteTensor HalfTensor DoubleTensor".split()


class MadeForKernel(NamedTuple):
    made: ast.Call
    """What puts it on the current GPU."""
    launch: ast.Call
    beside: str
    """The argument that the kernel takes too."""


def made_for_a_kernel(module: Module) -> Iterator[MadeForKernel]:
    """`out = torch.empty(n, device="cuda")` before `kernel[grid](x, out)` or `native.fill(x, out)`,
    where `x` is an argument and lies on the GPU of whoever calls."""
    by_type = module.calls(*(f"torch.cuda.{each}" for each in TYPES))
    for function in outermost(module, (*written(module), *by_type)):
        if may_choose(module, function):
            continue
        found: set[ast.AST] = set()
        for launch, held in (*_launched(module, function), *_filled(module, function)):
            for made, beside in _pairs(module, held):
                if made not in found and not any(module.contexts_of(made)):
                    found.add(made)
                    yield MadeForKernel(made, launch, beside)


def _launched(module: Module, function: FunctionNode) -> Iterator[tuple[ast.Call, Sequence[Held]]]:
    """Launches in the form of Triton: `kernel[grid](...)`."""
    for meeting in module.places(function).meetings:
        if meeting.operation == KERNEL and isinstance(meeting.node, ast.Call):
            yield meeting.node, (meeting.left, meeting.right)


def _filled(module: Module, function: FunctionNode) -> Iterator[tuple[ast.Call, Sequence[Held]]]:
    """Calls whose answer nobody takes: they write into what they are given."""
    seen = module.places(function).seen
    for statement in module.nodes(ast.Expr, function):
        call = statement.value
        if isinstance(call, ast.Call) and _is_native(module, call):
            yield call, [seen[each] for each in given(call) if each in seen]


def _is_native(module: Module, call: ast.Call) -> bool:
    """A function of a module that has no code here: not of torch, and not a method of a value."""
    owner = root_of(call.func)
    if not isinstance(call.func, ast.Attribute) or not isinstance(owner, ast.Name):
        return False
    dotted = module.qualified(call.func)
    if dotted.startswith("torch."):
        return dotted.startswith("torch.ops.")
    of_value = is_self_or_cls(owner) or is_bound_around(module, owner)
    return not (of_value or module.parameters_of(call) or _says_something(call))


def _says_something(call: ast.Call) -> bool:
    """Messages and titles are for people: the call shows what it is given."""
    return any(
        isinstance(each, ast.JoinedStr)
        or (isinstance(each, ast.Constant) and isinstance(each.value, str))
        for each in call.args
    )


def _pairs(module: Module, held: Sequence[Held]) -> Iterator[tuple[ast.Call, str]]:
    """What is made on the current GPU, each with an argument that is taken too."""
    beside = next((each.only.subject for each in held if each.only and _is_callers(each)), None)
    for each in held:
        made = each.only.by if each.only and _is_current_gpu(each.only) else None
        if beside is None or not isinstance(made, ast.Call):
            continue
        if not decided(module, made, "device"):
            yield made, beside


def _is_current_gpu(place: Place) -> bool:
    return place.where is Where.LITERAL and place.subject == "cuda"


def _is_callers(held: Held) -> bool:
    return held.what is What.TENSOR and held.only is not None and held.only.where is Where.OF
