"""Calls that put something on the current GPU: `.cuda()`, `"cuda"`, the default of a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.devices.shared.named.named_gpus import is_cuda_literal
from tensortrail.rules.view import FunctionNode, Module


def written(module: Module) -> Iterator[ast.Call]:
    """Calls that put something on a GPU that is written there."""
    for call in module.calls("cuda"):
        if _is_bare_cuda(call):
            yield call
    for call in module.nodes(ast.Call):
        said = [each.value for each in call.keywords if each.arg == "device"]
        if module.text(call.func).endswith(".to"):
            said += call.args[:1]
        if any(is_cuda_literal(module, each) for each in said):
            yield call
    for function in module.nodes(ast.FunctionDef):
        if _is_on_a_gpu_by_default(module, function):
            yield from module.calls(function.name)


def _is_on_a_gpu_by_default(module: Module, function: FunctionNode) -> bool:
    return any(
        each.arg == "device" and is_cuda_literal(module, default)
        for each, default in with_defaults(function.args)
    )


def under_is_cuda(module: Module) -> Iterator[tuple[ast.Call, str]]:
    """`y.cuda()` where `x.is_cuda` holds, with `x`."""
    for call in module.calls("cuda"):
        if not _is_bare_cuda(call):
            continue
        tests = [guard.test for guard in module.guards_of(call) if guard.holds]
        tests += [
            up.test
            for up in module.ancestors(call)
            if isinstance(up, ast.IfExp) and call in ast.walk(up.body)
        ]
        for test in tests:
            if isinstance(test, ast.Attribute) and test.attr == "is_cuda":
                owner = module.text(test.value)
                dropped = isinstance(module.parent(call), ast.Expr)
                if owner != "self" and not dropped and not _is_of(module, call, owner):
                    yield call, owner
                    break


def _is_bare_cuda(node: ast.AST) -> TypeGuard[ast.Call]:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "cuda"
        and not (node.args or node.keywords)
    )


def _is_of(module: Module, call: ast.Call, owner: str) -> bool:
    """It moves the very tensor that was asked."""
    return isinstance(call.func, ast.Attribute) and module.text(call.func.value) == owner
