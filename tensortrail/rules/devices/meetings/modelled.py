"""A tensor that is made after the shape or the dtype of another one, and then meets it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.devices.named.written import decided
from tensortrail.rules.devices.written_for.makers import FACTORIES
from tensortrail.rules.places import Held, Place, What, Where
from tensortrail.rules.shared.objects import keyword
from tensortrail.rules.view import FunctionNode, Module

_ASKED = frozenset({"shape", "dtype", "size"})


def made_after_another(module: Module) -> Iterator[tuple[ast.Call, ast.expr, str]]:
    """`torch.empty(n, dtype=x.dtype, device="cuda")` of an argument `x`: the call, the device and
    the argument."""
    for call in module.calls(*FACTORIES):
        said, dtype = keyword(call, "device"), keyword(call, "dtype")
        if not isinstance(said, ast.Constant) or said.value != "cuda":
            continue  # who makes a device of the current GPU means that one
        if not isinstance(dtype, ast.Attribute) or dtype.attr != "dtype":
            continue
        held = module.places(module.function_of(call) or module.top).seen.get(dtype.value)
        given = held is not None and held.only is not None and held.only.where is Where.OF
        if given and not decided(module, call, "device"):
            yield call, said, module.text(dtype.value)


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
