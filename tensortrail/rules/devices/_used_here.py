"""Whether a file itself uses on a GPU what it defines: then no caller elsewhere decides."""

from __future__ import annotations

import ast

from tensortrail.rules.devices._told import may_be_a_gpu
from tensortrail.rules.shared.moves import ACCELERATORS, TO_DEVICE, told_of
from tensortrail.rules.shared.objects import called
from tensortrail.rules.shared.tensor_origin import is_dtype
from tensortrail.rules.view import Module

_NAMED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def is_used_on_a_gpu(module: Module, node: ast.AST) -> bool:
    """The file makes an object of the class around, or calls the function, and puts something
    there on a device that may be a GPU."""
    around = [each for each in module.ancestors(node) if isinstance(each, _NAMED)]
    if not around:
        return False
    outer = around[-1]
    uses = [each for each in module.calls(outer.name) if outer not in module.ancestors(each)]
    where = {module.function_of(each) for each in uses}
    return any(
        module.function_of(move) in where and _may_go_to_a_gpu(module, move)
        for move in module.calls(*TO_DEVICE)
    )


def _may_go_to_a_gpu(module: Module, move: ast.Call) -> bool:
    if called(move) in ACCELERATORS:
        return True
    told = told_of(move)
    return told is not None and not is_dtype(module, told) and may_be_a_gpu(module, told)
