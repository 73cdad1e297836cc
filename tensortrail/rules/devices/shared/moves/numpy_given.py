"""Tensors that NumPy reads in a function, and that a caller of it has put on a device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.devices.shared.written_for.told import told_device
from tensortrail.rules.shared.given_values import Given, given_for
from tensortrail.rules.shared.moves import MOVES
from tensortrail.rules.shared.objects import called
from tensortrail.rules.shared.tensor_methods import JOINING, REDUCING, SAME_DEVICE
from tensortrail.rules.view import Module

_SAME = SAME_DEVICE | REDUCING | JOINING
_DEPTH = 6


def given_on_a_device(module: Module, tensor: ast.expr, far: bool) -> Given | None:
    """What a call passes for the argument that the tensor is, or is computed from alone; a call in
    another file too if `far`."""
    for name in _arguments_behind(module, tensor, _DEPTH):
        for given in given_for(module, name, far):
            if told_device(given.module, given.node) is not None:
                return given
    return None


def _arguments_behind(module: Module, node: ast.expr, depth: int) -> Iterator[ast.expr]:
    """`scores` of `scores.argmax(-1)`, of `values, index = scores.topk(k)`."""
    if not depth:
        return
    match node:
        case ast.Name():
            origins = module.value_of(node).origins
            if not origins:
                yield node
            for each in origins:
                yield from _arguments_behind(module, each, depth - 1)
        case ast.Attribute(value=value, attr="data" | "T" | "mT") | ast.Subscript(value=value):
            yield from _arguments_behind(module, value, depth - 1)
        case ast.Call(func=ast.Attribute(value=value)) if called(node) in _SAME - MOVES:
            yield from _arguments_behind(module, value, depth - 1)
