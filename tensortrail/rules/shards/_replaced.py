"""Code that gives a module other parameters, or other memory for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules import Module
from tensortrail.rules.shared.objects import called, is_true, keyword, name_of, receiver

_OVER = ("parameters", "named_parameters", "modules", "named_modules", "children", "named_children")
_CASTS = ("half", "float", "bfloat16", "double", "to", "type", "contiguous", "clone", "float32")


def state_dict_of(module: Module, node: ast.expr) -> str:
    """The name of `m` for `m.state_dict()` as it is, not copied; "" for anything else."""
    if not isinstance(node, ast.Call) or called(node) != "state_dict":
        return ""
    owner = receiver(node)
    if owner is None or isinstance(owner, ast.Call):
        return ""
    return name_of(module, owner)


def walked(module: Module, loop: ast.For) -> str:
    """The name of the module whose parameters or submodules a loop goes through."""
    for call in (loop.iter, *module.nodes(ast.Call, loop.iter)):
        if isinstance(call, ast.Call) and called(call) in _OVER:
            owner = receiver(call)
            if owner is not None and not isinstance(owner, ast.Call):
                return name_of(module, owner)
    return ""


def data_swaps(module: Module, inside: ast.AST) -> Iterator[ast.Assign]:
    """`p.data = ...` that gives a parameter memory of another dtype or shape."""
    for assign in module.nodes(ast.Assign, inside):
        target = assign.targets[0]
        if isinstance(target, ast.Attribute) and target.attr == "data":
            value = assign.value
            if isinstance(value, ast.Call) and called(value) in _CASTS:
                yield assign


def swapped_modules(module: Module, swap: ast.Assign) -> set[str]:
    """The modules whose parameters the loops around a swap go through."""
    target = swap.targets[0]
    owner = target.value if isinstance(target, ast.Attribute) else target
    loops = [up for up in module.ancestors(swap) if isinstance(up, ast.For)]
    bound = {each.id for loop in loops for each in ast.walk(loop.target)
             if isinstance(each, ast.Name)}  # fmt: skip
    if not isinstance(owner, ast.Name) or owner.id not in bound:
        return set()
    return {walked(module, loop) for loop in loops} - {""} - bound


def replaces_parameters(module: Module, call: ast.Call) -> str:
    """The name of the module whose Parameter objects the call exchanges; "" if it does not."""
    last, owner = called(call), receiver(call)
    if owner is not None and not isinstance(owner, ast.Call):
        meta = call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value == "meta"
        if (
            (last == "load_state_dict" and is_true(keyword(call, "assign")))
            or last == "to_empty"
            or (last == "to" and meta)
        ):
            return name_of(module, owner)
    if last in ("load_checkpoint_in_model", "load_checkpoint_and_dispatch") and call.args:
        return name_of(module, call.args[0])
    return ""
