"""Devices written into code: where they stand."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Fix, Safety
from tensortrail.rules.devices.shared.named.devices_said import devices_said
from tensortrail.rules.devices.shared.named.named_gpus import is_cuda_literal
from tensortrail.rules.shared.moves import named_device
from tensortrail.rules.shared.objects import is_of_torch
from tensortrail.rules.view import FunctionNode, Module


def written_literals(
    module: Module, function: FunctionNode
) -> Iterator[tuple[ast.Call, ast.expr | None]]:
    """`x.to("cuda")` with the device said; `x.cuda()` without."""
    for call, said in devices_said(module, function):
        if is_cuda_literal(module, said) and module.function_of(call) is function:
            yield call, said
    for call in module.calls("cuda", inside=function):
        if (isinstance(call.func, ast.Attribute) and not (call.args or call.keywords)) and (
            module.function_of(call) is function and not is_of_torch(module, call)
        ):
            yield call, None


def numbered_beside(module: Module, function: FunctionNode) -> ast.expr | None:
    """A GPU by a number that the code does not write: `f"cuda:{rank}"`, where the function puts
    something."""
    for _, said in devices_said(module, function):
        named = named_device(module, said)
        made = module.value_of(named).origins if isinstance(named, ast.Name) else (named,)
        if len(made) == 1 and isinstance(made[0], ast.JoinedStr) and _is_numbered(made[0]):
            return said
    return None


def _is_numbered(text: ast.JoinedStr) -> bool:
    match text.values:
        case [ast.Constant(value="cuda:"), ast.FormattedValue()]:
            return True
    return False


def is_without_number(module: Module, said: ast.expr | None) -> bool:
    """`.cuda()`, or `"cuda"`: the current GPU."""
    return said is None or module.value_of(named_device(module, said)).constant == "cuda"


def given_instead(module: Module, call: ast.Call, said: ast.expr | None, shown: str) -> Fix | None:
    if said is not None:
        edit = module.replace(said, shown)
    elif isinstance(call.func, ast.Attribute):
        edit = module.replace(call, f"{module.text(call.func.value)}.to({shown})")
    else:
        return None
    return module.fix(f"use `{shown}`", Safety.UNSAFE, edit)
