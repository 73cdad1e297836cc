"""Process groups: those made before the process has chosen its GPU, and who runs once a GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.parallel_wrappers import AVERAGING
from tensortrail.rules.view import FunctionNode, Module

_COLLECTIVES = ("all_reduce", "all_gather", "broadcast", "all_gather_object")
"""Not a barrier: its first one takes the GPU of the rank, whichever is current."""


def groups_before_devices(
    module: Module, function: FunctionNode
) -> Iterator[tuple[ast.Call, ast.Call, ast.Call | None]]:
    """The call that makes a group of NCCL, the one that sets the device after it, and the first
    collective between the two, if there is one."""
    for call in module.calls("init_process_group", inside=function):
        backend = module.argument(call, 0, "backend")
        named = isinstance(backend, ast.Constant) and "nccl" in str(backend.value)
        if not named or any(each.arg in (None, "device_id") for each in call.keywords):
            continue
        sets = [
            each
            for each in module.later(call, ast.Call)
            if module.qualified(each.func) == "torch.cuda.set_device"
        ]
        before = any(
            module.qualified(each.func).endswith("set_device")
            for each in module.earlier(call, ast.Call)
        )
        if sets and not before:
            yield call, sets[0], _communicates(module, call, sets[0])


def _communicates(module: Module, start: ast.Call, end: ast.Call) -> ast.Call | None:
    """A collective between the two calls: NCCL begins with the first one."""
    for call in module.later(start, ast.Call):
        if call is end:
            return None
        if module.qualified(call.func).rpartition(".")[2] in _COLLECTIVES:
            return call
    return None


def runs_once_a_gpu(module: Module, around: FunctionNode | ast.ClassDef) -> ast.Call | None:
    """Where it wraps a model for the GPU of its process, or chooses that GPU by a variable in a
    file that joins a process group: the same code runs once a GPU."""
    chosen = module.calls("torch.cuda.set_device", inside=around)
    for each in chosen:
        if each.args and not isinstance(each.args[0], ast.Constant):
            return each if next(module.calls("init_process_group"), None) is not None else None
    wrapped = module.calls(*AVERAGING, inside=around)
    for each in wrapped:
        if each.args and any(keyword.arg == "device_ids" for keyword in each.keywords):
            return each
    return None
