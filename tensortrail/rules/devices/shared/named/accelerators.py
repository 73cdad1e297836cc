"""Which variables are the `Accelerator` of the accelerate library."""

from __future__ import annotations

import ast

from tensortrail.rules.devices.shared.named.devices_said import is_of_library
from tensortrail.rules.view import FunctionNode, Module

_OF_ACCELERATORS = frozenset(
    "is_main_process unwrap_model autocast wait_for_everyone is_local_main_process".split()
)


def accelerator_of_file(module: Module, file: ast.AST) -> ast.Name | None:
    """`accelerator` of `accelerator = Accelerator()` at the top of a script."""
    for call in module.calls("accelerate.Accelerator"):
        stored = module.parent(call)
        if isinstance(stored, ast.Assign) and module.parent(stored) is file:
            target = stored.targets[0]
            return target if isinstance(target, ast.Name) else None
    return None


def accelerator_given(module: Module, function: FunctionNode) -> ast.Name | None:
    """`accelerator`, an argument that is asked for what `accelerate.Accelerator` has."""
    used = module.once(_used_as_accelerators, function)
    given = {each.arg for each in (*function.args.args, *function.args.kwonlyargs)}
    names = (each for each in module.nodes(ast.Name, function) if each.id in used & given)
    return next(names, None)


def is_accelerator(module: Module, function: FunctionNode, node: ast.Name) -> bool:
    """Made as one, or asked for what `accelerate.Accelerator` has."""
    if node.id in module.once(_used_as_accelerators, function):
        return True
    known = module.once(_speaks_of_accelerators, module.top)
    return known and module.value_of(node).cls.rpartition(".")[2] == "Accelerator"


def _speaks_of_accelerators(module: Module, file: ast.AST) -> bool:
    named = module.uses("Accelerator") or module.members("Accelerator")
    return bool(named) or any(each.value == "Accelerator" for each in module.nodes(ast.Constant))


def _used_as_accelerators(module: Module, function: FunctionNode) -> set[str]:
    return {
        each.value.id
        for each in module.nodes(ast.Attribute, function)
        if each.attr in _OF_ACCELERATORS
        and isinstance(each.value, ast.Name)
        and not is_of_library(module, each)
    }
