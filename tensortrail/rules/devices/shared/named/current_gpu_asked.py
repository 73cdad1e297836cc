"""Calls that are about the current GPU and say no device."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tensortrail.rules.devices.shared.named.named_gpus import is_cuda_literal
from tensortrail.rules.view import FunctionNode, Module

_ASKS_CURRENT = ("current_device", "_current_device", "current_device_name")


def autocasts(module: Module, function: FunctionNode) -> Iterator[tuple[ast.Call, ast.expr | None]]:
    """`torch.autocast("cuda")` with the device said; `torch.cuda.amp.autocast()` without."""
    for call in module.calls("autocast", inside=function):
        dotted = module.qualified(call.func)
        if module.function_of(call) is not function or not dotted.startswith("torch."):
            continue
        said = module.argument(call, 0, "device_type")
        if dotted.startswith("torch.cuda."):
            yield call, None
        elif said is not None and is_cuda_literal(module, said):
            yield call, said


def asked_at_import(module: Module, function: FunctionNode) -> Iterator[ast.Call]:
    """Calls that ask for the current device in the defaults of parameters."""
    given = function.args
    for default in (*given.defaults, *given.kw_defaults):
        if default is None:
            continue
        within = [default] if isinstance(default, ast.Call) else []
        for call in (*module.nodes(ast.Call, default), *within):
            if module.text(call.func).rpartition(".")[2] in _ASKS_CURRENT:
                yield call


def bare_calls(module: Module, function: FunctionNode, names: Iterable[str]) -> Iterator[ast.Call]:
    """Calls of these functions in the body of this one that say no device."""
    defaults = list(asked_at_import(module, function))
    for call in module.calls(*names, inside=function):
        said = call.args or call.keywords
        if not said and call not in defaults and module.function_of(call) is function:
            yield call
