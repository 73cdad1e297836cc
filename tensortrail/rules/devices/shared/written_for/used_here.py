"""Whether a file itself uses on a GPU what it defines: then no caller elsewhere decides."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.rules.devices.shared.written_for.told import may_be_a_gpu
from tensortrail.rules.shared.dtypes import is_dtype
from tensortrail.rules.shared.functions import matched, parameter_names
from tensortrail.rules.shared.moves import ACCELERATORS, TO_DEVICE, named_device, told_of
from tensortrail.rules.shared.objects import called
from tensortrail.rules.view import Module

_NAMED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def is_used_on_a_gpu(module: Module, node: ast.AST) -> bool:
    """The file makes an object of the class around, or calls the function, and puts something
    there on a device that may be a GPU."""
    return any(_may_go_to_a_gpu(module, move) for move in _moves_beside_uses(module, node))


def is_used_elsewhere(module: Module, node: ast.AST) -> bool:
    """The same for a device that is written out and is not the current GPU: `net.to("cpu")`, or
    `net.to(device)` in a function that the file calls with "cuda:1"."""
    return any(
        _is_another(module, said)
        for move in _moves_beside_uses(module, node)
        for said in _given(module, move)
    )


def _moves_beside_uses(module: Module, node: ast.AST) -> Iterator[ast.Call]:
    """Of the functions that make an object of the class around the node, or call the function."""
    around = [each for each in module.ancestors(node) if isinstance(each, _NAMED)]
    if around:
        outer = around[-1]
        uses = [each for each in module.calls(outer.name) if outer not in module.ancestors(each)]
        where = {module.function_of(each) for each in uses}
        moves = module.calls(*TO_DEVICE)
        yield from (each for each in moves if module.function_of(each) in where)


def _given(module: Module, move: ast.Call) -> Iterator[ast.expr]:
    """The device that the move is told, or what calls in this file give for it."""
    told, function = told_of(move), module.function_of(move)
    if told is None:
        return
    yield told
    if isinstance(told, ast.Name) and function is not None and told.id in parameter_names(function):
        for call in module.calls(function.name):
            yield from (each for name, each in matched(function, call) if name == told.id)


def _is_another(module: Module, said: ast.expr) -> bool:
    name = module.value_of(named_device(module, said)).constant
    return isinstance(name, str) and re.fullmatch(r"cpu|cuda:[1-9]\d*", name) is not None


def _may_go_to_a_gpu(module: Module, move: ast.Call) -> bool:
    if called(move) in ACCELERATORS:
        return True
    told = told_of(move)
    return told is not None and not is_dtype(module, told) and may_be_a_gpu(module, told)
