"""A tensor that is made after the shape or the dtype of another one, and then meets it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.devices.shared.named.decided_by import decided
from tensortrail.rules.devices.shared.written_for.makers import FACTORIES
from tensortrail.rules.places import Held, Place, What, Where
from tensortrail.rules.shared.objects import called, keyword, receiver
from tensortrail.rules.view import FunctionNode, Module

_ASKED = frozenset({"shape", "dtype", "size"})


def made_after_another(module: Module) -> Iterator[tuple[ast.Call, ast.expr, str]]:
    """`torch.empty(n, dtype=x.dtype, device="cuda")` of an argument `x`: the call, the device and
    the argument. So is `torch.ones(n).type(x.type())`, which goes to the current GPU."""
    for call in module.calls(*FACTORIES):
        said, dtype = keyword(call, "device"), keyword(call, "dtype")
        if not isinstance(said, ast.Constant) or said.value != "cuda":
            continue  # who makes a device of the current GPU means that one
        if not isinstance(dtype, ast.Attribute) or dtype.attr != "dtype":
            continue
        if _lies(module, dtype.value, Where.OF) and not decided(module, call, "device"):
            yield call, said, module.text(dtype.value)
    yield from _cast_to_a_type(module)


def _cast_to_a_type(module: Module) -> Iterator[tuple[ast.Call, ast.expr, str]]:
    """`torch.tensor(1).type(x.type())`: a text such as `torch.cuda.FloatTensor` names no number."""
    for call in module.calls("type"):
        said, made = call.args[0] if len(call.args) == 1 else None, receiver(call)
        asked = isinstance(said, ast.Call) and called(said) == "type" and not said.args
        like = receiver(said) if asked and isinstance(said, ast.Call) else None
        if made is None or like is None or not _lies(module, made, Where.DEFAULT):
            continue
        if _lies(module, like, Where.OF) and not decided(module, call, "device"):
            yield call, call, module.text(like)


def _lies(module: Module, tensor: ast.expr, where: Where) -> bool:
    held = module.places(module.function_of(tensor) or module.top).seen.get(tensor)
    return held is not None and held.only is not None and held.only.where is where


def of_its_model(module: Module, function: FunctionNode, made: Place, other: Held) -> Place | None:
    """Where the variable lies that the factory took shape or dtype of, if that is what it meets."""
    there = other.only if other.what is What.TENSOR else None
    if there is None or there.where is not Where.LOCAL or not isinstance(made.by, ast.Call):
        return None
    return there if is_modelled_on(module, function, made.by, there) else None


def is_modelled_on(module: Module, function: FunctionNode, made: ast.Call, there: Place) -> bool:
    """`torch.ones(x.shape[0], 3)` and `torch.tensor(rows, dtype=x.dtype)`, where `x` lies there."""
    seen = module.places(function).seen
    for asked in module.nodes(ast.Attribute, made):
        held = seen.get(asked.value) if asked.attr in _ASKED else None
        if held is not None and held.only is not None and held.only.subject == there.subject:
            return held.only.where is there.where
    return False
