"""Calls that pass a tensor to other processes: of libraries, or of the project around them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.patterns import pattern
from tensortrail.rules.shared.functions import parameters
from tensortrail.rules.shared.objects import called
from tensortrail.rules.view import FunctionNode, Module

OF_TORCH = {
    "all_reduce": 0, "broadcast": 0, "reduce": 0, "send": 0, "recv": 0, "gather": 0,
    "all_gather": 1, "all_gather_into_tensor": 1, "all_gather_single": 1,
    "reduce_scatter_tensor": 1, "reduce_scatter_single": 1,
}  # fmt: skip
"""Collectives of `torch.distributed`, with the position of the tensor that is passed around."""
_OF_ACCELERATE = ("gather", "gather_for_metrics", "reduce", "pad_across_processes")
_OF_DEVICES = ("cuda", "device", "cpu", "gpu", "backend", "nccl")
_GROUPS = ("group", "process_group")
_WORD = pattern(r"reduce|gather|broadcast|sync|send|collect|average|total|mean", re.I)
"""What functions around a collective of another file are called: others are not looked up."""


def collectives(module: Module) -> Iterator[tuple[ast.Call, ast.expr | None]]:
    """Each call, and the tensor of it that other processes get."""
    for call in module.calls(*OF_TORCH, *_OF_ACCELERATE):
        if _is_of_a_library(module, call):
            yield call, passed_by(call)


def through_helpers(module: Module) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Calls of functions of the project that pass on what they are given, as it is."""
    own = {each.name for each in module.nodes(ast.FunctionDef)}
    for call in module.nodes(ast.Call):
        name = module.qualified(call.func)
        last = name.rpartition(".")[2]
        known = last in own if isinstance(call.func, ast.Name) else False
        if not last or not (known or _WORD.search(last)):
            continue
        if name.startswith("torch.") or _is_of_a_library(module, call):
            continue
        for position, parameter in module.about(name, passed_on) or ():
            passed = module.argument(call, position, parameter)
            if passed is not None:
                yield call, passed


def passed_on(module: Module, function: ast.AST) -> frozenset[tuple[int, str]]:
    """The parameters, with their positions, that the function gives as they are to a collective of
    all processes."""
    if not isinstance(function, ast.FunctionDef):
        return frozenset()
    names = [each.arg for each in parameters(function)]
    given = {
        passed.id
        for call in module.calls(*OF_TORCH, inside=function)
        if _is_of_a_library(module, call) and not names_a_group(call)
        if not any(guard.mentions(*_OF_DEVICES) for guard in module.guards_of(call))
        if isinstance(passed := passed_by(call), ast.Name)
    }
    kept = (each for each in given if _is_as_given(module, function, each))
    return frozenset((names.index(each), each) for each in kept)


def passed_by(call: ast.Call) -> ast.expr | None:
    """The tensor that is passed to other processes."""
    name = called(call)
    of_accelerate = isinstance(call.func, ast.Attribute) and len(call.args) == 1
    position = 0 if of_accelerate else OF_TORCH.get(name, 0)
    for each in call.keywords:
        if each.arg in ("tensor", "input_tensor", "input"):
            return each.value
    return call.args[position] if position < len(call.args) else None


def names_a_group(call: ast.Call) -> bool:
    """It may be of another backend."""
    groups = [each.value for each in call.keywords if each.arg in _GROUPS]
    return any(not (isinstance(each, ast.Constant) and each.value is None) for each in groups)


def _is_as_given(module: Module, function: FunctionNode, name: str) -> bool:
    if name not in [each.arg for each in parameters(function)]:
        return False
    return all(isinstance(each.ctx, ast.Load) for each in module.uses(name, function))


def _is_of_a_library(module: Module, call: ast.Call) -> bool:
    dotted = module.qualified(call.func)
    name = dotted.rpartition(".")[2]
    owner = dotted.rpartition(".")[0].rpartition(".")[2].lower()
    if dotted.startswith("torch.distributed."):
        return name in OF_TORCH
    return name in _OF_ACCELERATE and owner == "accelerator"
