"""Operations whose tensors must lie on one device, and the tensors of each."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.view import Module

_JOINING = frozenset(
    (
        "add addcdiv addcmul addmm addmv allclose atan2 baddbmm bitwise_and bitwise_left_shift "
        "bitwise_or bitwise_right_shift bitwise_xor block_diag bmm bucketize cat cdist complex "
        "concat concatenate conv1d conv2d conv3d cross cross_entropy dot einsum embedding eq "
        "equal fmod gather ge grid_sample gt hstack index_add index_select isin kron le lerp "
        "linear logical_and logical_or logical_xor lt masked_select matmul maximum minimum mm "
        "mse_loss mul mv ne outer polar remainder row_stack scaled_dot_product_attention scatter "
        "scatter_add searchsorted stack sub take_along_dim tensordot true_divide vdot vstack where"
    ).split()
)
"""Functions of torch that refuse tensors of several devices."""
_METHODS = _JOINING - frozenset({"cat", "stack", "where", "linear", "equal", "embedding"})
_IN_PLACE = frozenset("add_ div_ mul_ sub_ masked_fill_ scatter_ scatter_add_ index_add_".split())
_FUNCTIONS = ("torch.", "torch.nn.functional.", "torch.linalg.")


class Operation(NamedTuple):
    node: ast.expr | ast.AugAssign
    tensors: tuple[ast.expr, ...]
    """The operands that may be tensors, scalars not yet told from them."""


def operations(module: Module, inside: ast.AST) -> Iterator[Operation]:
    """Operations below a node that fail if their tensors are on two devices."""
    for binary in module.nodes(ast.BinOp, inside):
        yield Operation(binary, (binary.left, binary.right))
    for compare in module.nodes(ast.Compare, inside):
        if len(compare.ops) == 1 and isinstance(
            compare.ops[0], (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
        ):
            yield Operation(compare, (compare.left, compare.comparators[0]))
    for added in module.nodes(ast.AugAssign, inside):
        yield Operation(added, (added.target, added.value))
    for call in module.nodes(ast.Call, inside):
        operands = _operands(module, call)
        if len(operands) > 1:
            yield Operation(call, operands)


def _operands(module: Module, call: ast.Call) -> tuple[ast.expr, ...]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    dotted = module.qualified(call.func)
    head, _, last = dotted.rpartition(".")
    if f"{head}." in _FUNCTIONS:
        return _flat(_given(call)) if last in _JOINING else ()
    if (name in _METHODS or name in _IN_PLACE) and isinstance(call.func, ast.Attribute):
        return (call.func.value, *_flat(_given(call)))
    return ()


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(each.value for each in call.keywords if each.arg != "out")]


def _flat(arguments: list[ast.expr]) -> tuple[ast.expr, ...]:
    """The elements of lists too: `torch.cat([a, b], 1)`."""
    found: list[ast.expr] = []
    for each in arguments:
        if isinstance(each, (ast.List, ast.Tuple)):
            found += each.elts
        elif not isinstance(each, (ast.Constant, ast.Starred)):
            found.append(each)
    return tuple(found)
