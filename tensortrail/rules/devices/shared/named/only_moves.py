"""Choices between moves: whichever arm is taken, the tensor comes to the device that is meant."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.rules.shared.moves import CASTS, moves_to_cpu, told_of
from tensortrail.rules.shared.objects import called, receiver
from tensortrail.rules.view import Module

_EMPTIES = re.compile(r"torch\.(\w+\.)?empty_cache")
_SAYS = frozenset("print log debug info warning warn".split())
_CASTS = CASTS | {"float", "contiguous", "detach", "clone"}


def always_moves(module: Module, compare: ast.expr) -> bool:
    """All that the arm does which is always taken is to move: `if x.device != "cpu": x = x.cpu()`.
    Or it only empties a cache.

    A move that moves nothing costs little. `x.cuda()` is another matter, unless the device was
    compared with "cuda": it needs a GPU."""
    if not isinstance(compare, ast.Compare):
        return False
    negated = isinstance(compare.ops[0], (ast.NotEq, ast.NotIn))
    test: ast.expr = compare
    up = module.parent(compare)
    if negated and isinstance(up, ast.BoolOp) and isinstance(up.op, ast.And):
        test, up = up, module.parent(up)  # `if x is not None and x.device != "cpu"`
    if isinstance(up, ast.IfExp) and up.test is test:
        taken, other = (up.body, up.orelse) if negated else (up.orelse, up.body)
        return _is_move(module, taken, compare) and _root(module, taken) == _root(module, other)
    if isinstance(up, ast.If) and up.test is test:
        steps = list(_steps(up.body if negated else up.orelse))
        if steps and all(each is not None and _frees_a_cache(module, each) for each in steps):
            return True
        moves = [each for each in steps if each is not None and _is_move(module, each, compare)]
        return bool(moves) and all(each is None or each in moves for each in steps)
    return False


def only_loads(module: Module, compare: ast.expr) -> bool:
    """Both arms load a file under one name, each to another device: what is loaded into a model is
    copied to where that is."""
    up = module.parent(compare)
    if not isinstance(up, ast.If) or up.test is not compare or len(up.body) != len(up.orelse):
        return False
    names = {_loaded_as(module, each) for each in (*up.body, *up.orelse)}
    name = next(iter(names), "")
    return len(up.body) == 1 and len(names) == 1 and bool(name) and _is_put_into_model(module, up)


def _loaded_as(module: Module, statement: ast.stmt) -> str:
    value = statement.value if isinstance(statement, ast.Assign) else None
    if not isinstance(value, ast.Call) or module.qualified(value.func) != "torch.load":
        return ""
    assert isinstance(statement, ast.Assign)
    return module.text(statement.targets[0])


def _is_put_into_model(module: Module, choice: ast.If) -> bool:
    return any(True for _ in module.calls("load_state_dict", inside=module.function_of(choice)))


def _steps(body: list[ast.stmt]) -> Iterator[ast.expr | None]:
    """What is bound or given back; None for what changes nothing, and for `return x`."""
    for statement in body:
        match statement:
            case ast.Assign(value=ast.ListComp(elt=elt)):
                yield elt
            case ast.Assign(value=value):
                yield value
            case ast.Return(value=ast.Name()) | ast.Pass():
                yield None
            case ast.Expr(value=ast.Call() as call) if called(call) in _SAYS:
                yield None
            case ast.Return(value=ast.expr() as value) | ast.Expr(value=ast.Call() as value):
                yield value
            case ast.If(body=then, orelse=otherwise):
                yield from _steps(then)
                yield from _steps(otherwise)
            case _:
                yield ast.Constant(None)


def _is_move(module: Module, node: ast.expr, compare: ast.Compare) -> bool:
    """`x.cpu()`, `x.to(device)`, `torch.from_numpy(x).float().to(device)`; and to the device that
    the comparison names."""
    if not isinstance(node, ast.Call) or receiver(node) is None:
        return False
    told = told_of(node) if called(node) == "to" else None
    named = {each.value for each in ast.walk(compare) if isinstance(each, ast.Constant)}
    to_cuda = called(node) == "cuda" and not (node.args or node.keywords) and "cuda" in named
    there = to_cuda or (isinstance(told, ast.Constant) and told.value in named)
    return moves_to_cpu(module, node) or isinstance(told, (ast.Name, ast.Attribute)) or there


def _frees_a_cache(module: Module, node: ast.expr) -> bool:
    """`torch.cuda.empty_cache()`, which does nothing where there is none."""
    name = module.qualified(node.func) if isinstance(node, ast.Call) else ""
    return name == "gc.collect" or bool(_EMPTIES.fullmatch(name))


def _root(module: Module, node: ast.expr) -> str:
    """`x` of `torch.from_numpy(x).float().to(device)`."""
    while isinstance(node, ast.Call):
        owner = receiver(node)
        if called(node) in ("from_numpy", "as_tensor", "tensor") and node.args:
            node = node.args[0]
        elif owner is not None and called(node) in _CASTS | {"to", "cpu", "cuda", "numpy"}:
            node = owner
        else:
            break
    return module.text(node)
