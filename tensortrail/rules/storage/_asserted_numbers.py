"""Tensors that a class insists are whole numbers: data, and never weights of a special class."""

from __future__ import annotations

import ast

from tensortrail.rules.view import Module

_WHOLE = frozenset(
    f"torch.{each}" for each in "uint8 int8 int16 short int32 int int64 long bool".split()
)


def has_no_weights(module: Module, tensor: ast.expr) -> bool:
    """`self.codes`, where the class asserts that `codes.dtype == torch.uint8`."""
    cls = module.class_of(tensor)
    name = module.text(tensor).rpartition(".")[2]
    return cls is not None and any(
        _insists(module, compare, name)
        for claim in module.nodes(ast.Assert, cls)
        for compare in module.nodes(ast.Compare, claim)
    )


def _insists(module: Module, compare: ast.Compare, name: str) -> bool:
    asked = module.text(compare.left).removeprefix("self.")
    return (
        asked == f"{name}.dtype"
        and isinstance(compare.ops[0], (ast.Eq, ast.Is))
        and module.qualified(compare.comparators[0]) in _WHOLE
    )
