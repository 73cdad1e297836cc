"""Arguments that a function deletes to free their memory."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.objects import called
from tensortrail.rules.view import FunctionNode, Module

_COLLECTS = ("empty_cache", "collect", "torch_empty_cache", "clear_memory", "flush")
_BESIDE = (*_COLLECTS, "synchronize", "ipc_collect", "is_available", "reset_peak_memory_stats")


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
    if _lives_on(module, delete, target.id):
        return False
    if not _is_read(module, delete, target.id) and not only_frees(module, delete):
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


def only_frees(module: Module, delete: ast.Delete) -> bool:
    """The function does nothing but delete what it is given and collect."""
    function = module.function_of(delete)
    calls = module.nodes(ast.Call, function)
    others = (ast.Assign, ast.Return, ast.For, ast.While, ast.With)
    return (
        function is not None
        and module.parent(delete) is function
        and all(called(each) in _BESIDE for each in calls)
        and not any(isinstance(each, others) for each in function.body)
        and not any(module.uses(each.arg, function) for each in function.args.args
                    if each.arg not in map(module.text, delete.targets))
    )  # fmt: skip
