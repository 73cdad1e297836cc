"""Losses that a meter sums with their graphs: an object of a class of the project."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.functions import parameters
from tensortrail.rules.shared.objects import (
    called,
    given,
    is_name,
    is_self,
    is_variable_or_own,
    receiver,
)
from tensortrail.rules.storage._gone_back import factor
from tensortrail.rules.storage._kept_by_object import Loop, stored_in
from tensortrail.rules.view import FunctionNode, Module

_CONVERTS = frozenset({"horovod.torch.allreduce", "horovod.torch.allgather"})
"""Functions whose result belongs to the graph of what they are given."""


def kept_by_meter(module: Module, loop: Loop, loss: str) -> Iterator[tuple[ast.expr, str]]:
    """`meter.update(loss, n)`, where the class of the meter adds up what it is given."""
    for call in module.nodes(ast.Call, loop):
        owner = receiver(call)
        if owner is None or not is_variable_or_own(owner):
            continue
        if not any(is_name(each, loss) for each in given(call)):
            continue
        taken, summed = _method_of(module, owner, called(call))
        by_position = zip(taken, call.args, strict=False)
        for name, value in (*by_position, *((each.arg, each.value) for each in call.keywords)):
            if name in summed and is_name(value, loss):
                yield value, module.text(owner)


def _method_of(
    module: Module, owner: ast.expr, name: str
) -> tuple[tuple[str, ...], frozenset[str]]:
    """What the method takes and what it adds up, of the class that made the object."""
    made = (*module.value_of(owner).origins, *stored_in(module, owner))
    names = {module.qualified(each.func) for each in made if isinstance(each, ast.Call)}
    methods = module.about(names.pop(), _methods) if len(names) == 1 else None
    return (methods or {}).get(name, ((), frozenset()))


def _methods(module: Module, cls: ast.AST) -> dict[str, tuple[tuple[str, ...], frozenset[str]]]:
    """The methods of a class that has no other base than `object`."""
    if not isinstance(cls, ast.ClassDef) or any(not is_name(each, "object") for each in cls.bases):
        return {}
    methods = [each for each in cls.body if isinstance(each, ast.FunctionDef)]
    taken = {each.name: tuple(one.arg for one in parameters(each)[1:]) for each in methods}
    return {
        each.name: (
            taken[each.name],
            frozenset(one for one in taken[each.name] if _adds(module, each, one)),
        )
        for each in methods
    }


def _adds(module: Module, method: FunctionNode, parameter: str) -> bool:
    """`self.sum += value * n` or `self.sum = self.sum + value`, with the parameter as it came."""
    uses = module.uses(parameter, inside=method)
    if any(isinstance(each.ctx, ast.Store) for each in uses) or "no_grad" in module.text(method):
        return False
    return any(
        factor(_before_conversion(module, each), parameter) is not None
        for each in _added(module, method)
    )


def _added(module: Module, method: FunctionNode) -> Iterator[ast.expr]:
    """What the method adds to attributes of its object."""
    for each in module.nodes(ast.AugAssign, method):
        if isinstance(each.op, ast.Add) and isinstance(each.target, ast.Attribute):
            yield each.value
    for assign in module.nodes(ast.Assign, method):
        match assign:
            case ast.Assign(
                targets=[ast.Attribute(value=owner) as target],
                value=ast.BinOp(left=first, op=ast.Add(), right=value),
            ) if is_self(owner) and module.text(first) == module.text(target):
                yield value


def _before_conversion(module: Module, value: ast.expr) -> ast.expr:
    """`value.cpu()` of `hvd.allreduce(value.cpu())`."""
    converts = isinstance(value, ast.Call) and module.qualified(value.func) in _CONVERTS
    return value.args[0] if converts and isinstance(value, ast.Call) and value.args else value
