"""What an evaluation keeps of a model's outputs, and whether gradients are on there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.shared.objects import called, given, receiver
from tensortrail.rules.view import FunctionNode, Module
from tensortrail.rules.words import Kind

_OFF = ("no_grad", "inference_mode", "set_grad_enabled", "requires_grad_(False)")
_BACK = ("backward", "grad", "manual_backward", "step", "autograd", "vjp", "jacobian")
_FURTHEST = 4
"""Calls one after another through which a caller is looked for."""
_NO_GRAPH = frozenset(
    "detach item numpy tolist argmax argmin argsort long int bool size dim numel eq ne gt lt "
    "ge le sign round floor nonzero decode batch_decode split_text".split()
)
_NO_TENSOR = frozenset("shape device dtype data ndim is_cuda".split())


class Kept(NamedTuple):
    value: ast.expr
    keeper: str
    evaluated: ast.Call
    """`model.eval()`."""


def kept_with_graph(module: Module) -> Iterator[Kept]:
    for evaluated in module.calls("eval"):
        function, model = module.function_of(evaluated), receiver(evaluated)
        if function is None or model is None or evaluated.args or _is_quiet(module, function):
            continue
        if module.class_of(evaluated) is not None and module.text(model) == "self":
            continue
        if _turns_off(module.text(module.statement_of(evaluated))):
            continue  # `model.eval().requires_grad_(False)`
        for loop in module.nodes(ast.For, function):
            if not _is_evaluated_at(module, evaluated, model, loop):
                continue
            for value, keeper in _kept(module, loop):
                lasts = _outlives(module, function, loop, keeper) and not _is_off(module, value)
                if lasts and _has_graph(module, value, module.text(model)):
                    yield Kept(value, keeper, evaluated)


def _is_evaluated_at(module: Module, evaluated: ast.Call, model: ast.expr, loop: ast.For) -> bool:
    """Nothing but the model is asked before the call of `eval` and not before the loop: a model
    that is evaluated now and then is trained there at other times."""
    held = {each.text for each in module.guards_of(loop)}
    asked = [each.test for each in module.guards_of(evaluated) if each.text not in held]
    name = module.text(model)
    return all(
        any(module.text(part) == name for part in ast.walk(test) if isinstance(part, ast.expr))
        for test in asked
    )


def _is_quiet(module: Module, function: FunctionNode) -> bool:
    """It trains as well, or gradients are off: here, in the file, or where it is called."""
    if any(_turns_off(module.text(each)) for each in function.decorator_list):
        return True
    if any(module.calls(*_BACK, inside=function)) or any(module.calls("set_grad_enabled")):
        return True
    return _is_called_off(module, function)


def _is_called_off(module: Module, function: FunctionNode) -> bool:
    """A caller in the file, or a caller of one, turns gradients off."""
    seen = {function}
    called = [function]
    for _ in range(_FURTHEST):
        calls = [call for each in called for call in module.calls(each.name)]
        if any(_is_off(module, call) for call in calls):
            return True
        callers = dict.fromkeys(module.function_of(call) for call in calls)
        called = [each for each in callers if each is not None and each not in seen]
        seen.update(called)
    return False


def _is_off(module: Module, node: ast.AST) -> bool:
    around = module.function_of(node)
    decorated = around is not None and any(
        _turns_off(module.text(each)) for each in around.decorator_list
    )
    return decorated or any(_turns_off(module.text(each)) for each in module.contexts_of(node))


def _turns_off(text: str) -> bool:
    return any(each in text for each in _OFF)


def _kept(module: Module, loop: ast.For) -> Iterator[tuple[ast.expr, str]]:
    """What a turn of the loop puts into a list or adds to a sum."""
    for call in module.calls("append", inside=loop):
        keeper = receiver(call)
        if keeper is not None and len(call.args) == 1:
            yield call.args[0], module.text(keeper)
    for statement in module.nodes(ast.AugAssign, loop):
        if isinstance(statement.op, ast.Add):
            yield statement.value, module.text(statement.target)


def _outlives(module: Module, function: FunctionNode, loop: ast.For, keeper: str) -> bool:
    """It is there before the loop, and does not begin anew in it."""
    stores = [
        each
        for each in module.nodes(ast.Assign, function)
        if any(keeper in _names(module, target) for target in each.targets)
    ]
    inside = [each for each in stores if loop.lineno <= each.lineno <= (loop.end_lineno or 0)]
    return bool(stores) and not inside


def _names(module: Module, target: ast.expr) -> list[str]:
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    return [module.text(each) for each in parts]


def _has_graph(module: Module, node: ast.expr, model: str, depth: int = 6) -> bool:
    """It was computed by the model, and nothing on the way cut it off from the graph."""
    if not depth:
        return False
    if isinstance(node, ast.Name):
        origins = module.value_of(node).origins
        return bool(origins) and all(
            _has_graph(module, each, model, depth - 1) and not _is_off(module, each)
            for each in origins
        )
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        cut = isinstance(node, ast.Attribute) and node.attr in _NO_TENSOR
        return not cut and _has_graph(module, node.value, model, depth - 1)
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        return any(_has_graph(module, each, model, depth - 1) for each in sides)
    return isinstance(node, ast.Call) and _of_call(module, node, model, depth - 1)


def _of_call(module: Module, call: ast.Call, model: str, depth: int) -> bool:
    if module.text(call.func) == model:
        return True
    owner = receiver(call)
    if called(call) in _NO_GRAPH:
        return False
    if owner is not None and _has_graph(module, owner, model, depth):
        return True
    computes = module.qualified(call.func).startswith("torch.") or _is_module(module, call.func)
    return computes and any(_has_graph(module, each, model, depth) for each in given(call))


def _is_module(module: Module, func: ast.expr) -> bool:
    origins = module.value_of(func).origins if isinstance(func, (ast.Name, ast.Attribute)) else ()
    losses = (module.qualified(each) for each in origins)
    return module.kind_of(func) is Kind.MODULE or any(
        each.startswith("torch.nn.") for each in losses
    )
