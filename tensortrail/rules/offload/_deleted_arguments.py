"""Arguments that a function deletes to free their memory."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.objects import called
from tensortrail.rules.view import FunctionNode, Module

_COLLECTS = ("empty_cache", "collect", "torch_empty_cache", "clear_memory", "flush")


def kept_arguments(module: Module, function: FunctionNode) -> frozenset[str]:
    """Those that keep the caller's object all through the function."""
    arguments = (*function.args.args, *function.args.kwonlyargs)
    stored = {each.id for each in module.nodes(ast.Name, function)
              if isinstance(each.ctx, ast.Store)}  # fmt: skip
    return frozenset(each.arg for each in arguments) - stored


def _lives_on(module: Module, delete: ast.Delete, name: str) -> bool:
    """`env = given`, then `del given`: only the name is to go."""
    return any(
        isinstance(each.value, ast.Name) and each.value.id == name
        for each in module.earlier(delete, ast.Assign)
    )


def is_meant_to_go(module: Module, delete: ast.Delete, target: ast.Name) -> bool:
    if _lives_on(module, delete, target.id) or not _is_read(module, delete, target.id):
        return False
    if any(module.text(each.func) == f"{target.id}.close" for each in module.calls("close")):
        return False  # a file or a connection
    return module.kind_of(target).value not in ("Other", "Settings")


def _is_read(module: Module, delete: ast.Delete, name: str) -> bool:
    """`del unused` at the top says that an argument is not needed, and is about no memory."""
    return any(
        each.id == name and isinstance(each.ctx, ast.Load)
        for each in module.nodes(ast.Name, module.function_of(delete))
    )


def collects_later(module: Module, delete: ast.Delete) -> bool:
    return any(called(call) in _COLLECTS for call in module.later(delete, ast.Call))
