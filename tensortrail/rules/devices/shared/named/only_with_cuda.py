"""Calls that raise where there is no GPU, and nothing asks before them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tensortrail.rules.view import Module

_NEEDS = (
    "synchronize Stream current_stream default_stream current_device get_device_properties "
    "get_device_name get_device_capability mem_get_info reset_peak_memory_stats get_rng_state"
).split()
_WORDS = ("cuda", "gpu", "device", "cpu", "accelerator", "rank", "distributed", "world", "nccl")


def needs_cuda() -> Sequence[str]:
    """Functions of `torch.cuda` that raise without a GPU."""
    return _NEEDS


def asked_of_cuda(module: Module) -> Iterator[ast.Call]:
    for call in module.calls(*(f"torch.cuda.{each}" for each in _NEEDS)):
        if not _is_tried(module, call) and not _is_asked_before(module, call):
            yield call


def _is_tried(module: Module, call: ast.Call) -> bool:
    child: ast.AST = call
    for up in module.ancestors(call):
        if isinstance(up, ast.Try) and up.handlers and child in up.body:
            return True
        child = up
    return False


def _is_asked_before(module: Module, call: ast.Call) -> bool:
    return any(guard.mentions(*_WORDS) for guard in module.guards_of(call))
