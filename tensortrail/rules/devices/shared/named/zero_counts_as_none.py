"""Numbers of GPUs that may be None, and are asked for by their truth: 0 counts as None."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.defaults import none_by_default
from tensortrail.rules.shared.annotations import names_said
from tensortrail.rules.shared.functions import parameters
from tensortrail.rules.shared.objects import is_name, last_name, names_in
from tensortrail.rules.view import FunctionNode, Module

_TAKES_A_NUMBER = frozenset({"torch.cuda.set_device", "torch.cuda.device"})


def zero_counts_as_none(module: Module) -> Iterator[ast.Name]:
    """`rank` of `if rank:`, where only this branch takes a GPU: the one of that number."""
    choices: list[ast.If | ast.IfExp] = [*module.nodes(ast.If), *module.nodes(ast.IfExp)]
    for asked in choices:
        number, function = asked.test, module.function_of(asked)
        taken, instead = _branch(asked.body), _branch(asked.orelse)
        if isinstance(number, ast.UnaryOp) and isinstance(number.op, ast.Not):
            number, taken, instead = number.operand, instead, taken
        if not isinstance(number, ast.Name) or function is None:
            continue
        if not any(
            _is_gpu_of(module, each, number.id) for part in taken for each in ast.walk(part)
        ):
            continue
        if not _names_a_gpu(instead) and _may_be_none_or_a_number(module, function, number.id):
            yield number


def _branch(part: ast.expr | list[ast.stmt]) -> list[ast.AST]:
    return list(part) if isinstance(part, list) else [part]


def _is_gpu_of(module: Module, node: ast.AST, number: str) -> bool:
    """`f"cuda:{rank}"`, `torch.device("cuda", rank)`, `torch.cuda.set_device(rank)`."""
    match node:
        case ast.JoinedStr(values=[ast.Constant(value="cuda:"), ast.FormattedValue(value=said)]):
            return number in names_in(said)
        case ast.Call(args=[ast.Constant(value="cuda"), given]):
            return module.qualified(node.func) == "torch.device" and is_name(given, number)
        case ast.Call(args=[given]):
            return module.qualified(node.func) in _TAKES_A_NUMBER and is_name(given, number)
    return False


def _names_a_gpu(parts: list[ast.AST]) -> bool:
    """The other branch takes a GPU too, as the first one."""
    constants = (
        each for part in parts for each in ast.walk(part) if isinstance(each, ast.Constant)
    )
    return any(isinstance(each.value, str) and "cuda" in each.value for each in constants)


def _may_be_none_or_a_number(module: Module, function: FunctionNode, name: str) -> bool:
    """A parameter that is None where it is left out, and is said to be a number or counted with."""
    found = next((each for each in parameters(function) if each.arg == name), None)
    if found is None or any(
        isinstance(each.ctx, ast.Store) for each in module.uses(name, inside=function)
    ):
        return False
    if none_by_default(function.args, name) is None:
        return False
    said = set(names_said(module, found.annotation)) if found.annotation else set()
    if said:
        return "int" in said and "str" not in said
    return _is_counted_with(module, function, name)


def _is_counted_with(module: Module, function: FunctionNode, name: str) -> bool:
    """`rank % gpus`, `(rank or 0) % gpus`, or a function takes it that takes numbers only."""
    counted = any(
        isinstance(each.op, (ast.Mod, ast.FloorDiv))
        and isinstance(each.left, (ast.Name, ast.BoolOp))
        and name in names_in(each.left)
        for each in module.nodes(ast.BinOp, function)
    )
    return counted or any(
        last_name(each.func) in ("device", "set_device") and _is_gpu_of(module, each, name)
        for each in module.nodes(ast.Call, function)
    )
