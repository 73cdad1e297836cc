"""Models that accelerate keeps offloaded: their weights are on meta between two calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.objects import resolved_name
from tensortrail.rules.view import Module

_OFFLOADS = ("cpu_offload", "disk_offload")
_UNDOES = frozenset({"remove_hook_from_module", "remove_hook_from_submodules"})


def offloading_calls(module: Module) -> Iterator[ast.Call]:
    for owner in ("accelerate", "accelerate.big_modeling"):
        yield from module.calls(*(f"{owner}.{name}" for name in _OFFLOADS))


def ends_offloading(module: Module, call: ast.Call) -> bool:
    return resolved_name(module, call) in _UNDOES
