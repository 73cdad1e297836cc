"""Loads into a wrapper of a state dict whose names lack the wrapper's prefix."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules import Module
from tensortrail.rules.shards._cut_names import cut_off
from tensortrail.rules.shards._loaded_again import loads, prefix_of
from tensortrail.rules.shards._wrapped import writer_of
from tensortrail.rules.shared.objects import receiver


class Bare(NamedTuple):
    load: ast.Call
    model: ast.expr
    prefix: str
    why: str
    by: ast.AST


def loaded_without_prefix(module: Module) -> Iterator[Bare]:
    """Of names that the prefix was cut off, and of a file with the weights of the module inside."""
    inner = dict(_loads_of_inner(module))
    for call in module.calls("load_state_dict"):
        model, given = receiver(call), module.argument(call, 0, "state_dict")
        prefix = prefix_of(module, model) if model is not None else ""
        if model is None or given is None or not prefix:
            continue
        if prefix in cut_off(module, given):
            yield Bare(call, model, prefix, "it was cut off the names before", given)
        elif call in inner and not _is_renamed(module, given, prefix):
            yield Bare(call, model, prefix, "the file has those of the module inside", inner[call])


def _loads_of_inner(module: Module) -> Iterator[tuple[ast.Call, ast.Call]]:
    """Each load, and the `model.module.state_dict()` that its file was written with."""
    for saved in module.calls("state_dict"):
        owner = receiver(saved)
        if not isinstance(owner, ast.Attribute) or owner.attr not in ("module", "_orig_mod"):
            continue
        writer = writer_of(module, saved)
        for load in loads(module, writer, saved, "") if writer is not None else ():
            yield load.call, saved


def _is_renamed(module: Module, given: ast.expr, prefix: str) -> bool:
    """Something in the function of the load is about the prefix."""
    function = module.function_of(given)
    return any(
        isinstance(each.value, str) and prefix in each.value
        for each in module.nodes(ast.Constant, function)
    )
