"""Functions that work on data before it is moved, and methods whose callers are all for one use."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from tensortrail.rules.view import FunctionNode, Module

_PREPARES = (
    "collate",
    "upgrade",
    "preprocess",
    "tokenize",
    "load",
    "read",
    "__getitem__",
    "convert",
)
"""How the names of methods begin that work on data before it is moved."""


def prepares(module: Module, function: FunctionNode) -> bool:
    """The function, or all callers of the method in the file, work on data that is moved later."""
    return is_for(module, function, _prepares)


def is_for(
    module: Module, function: FunctionNode, use: Callable[[Module, FunctionNode], bool]
) -> bool:
    """The function is for this use, or a method of which all callers in the file are."""
    if use(module, function):
        return True
    callers = module.once(_callers, function)
    return bool(callers) and all(use(module, each) for each in callers)


def _callers(module: Module, function: FunctionNode) -> Sequence[FunctionNode]:
    """Of a method, those in its class that call it; none if it is called from elsewhere too."""
    cls = module.parent(function)
    found: list[FunctionNode] = []
    for call in module.calls(function.name) if isinstance(cls, ast.ClassDef) else ():
        caller = module.function_of(call)
        own = module.text(call.func) == f"self.{function.name}"
        if caller is None or caller is function or not own or module.class_of(call) is not cls:
            return []
        found.append(caller)
    return found


def _prepares(module: Module, function: FunctionNode) -> bool:
    """It works on data before it is moved: by its name, or as what a loader collates with."""
    by_name = function.name.lstrip("_").startswith(_PREPARES)
    collating = module.once(_given_to_loaders, module.top)
    return by_name or any(each.endswith(function.name) for each in collating)


def _given_to_loaders(module: Module, file: ast.AST) -> list[str]:
    keywords = module.nodes(ast.keyword)
    return [module.text(each.value) for each in keywords if each.arg == "collate_fn"]
