"""Statements that are only a comprehension of moves: `{k: v.to(d) for k, v in batch.items()}`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.devices.shared.batches.dropped_batch import taken_as_tensor
from tensortrail.rules.shared.moves import MOVES
from tensortrail.rules.shared.objects import called, receiver
from tensortrail.rules.view import Module
from tensortrail.rules.words import Kind

LINE = re.compile(rb"[^=\n]*\.(?:to|cuda|cpu)\((?:[^\n]*\n){0,4}[^\n]*\bfor\b")
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp


class Dropped(NamedTuple):
    statement: ast.Expr
    move: ast.Call
    whole: ast.expr
    """What the comprehension goes through."""


def dropped_comprehensions(module: Module) -> Iterator[Dropped]:
    """Those of tensors: modules move in place, and a list of their moves may be meant."""
    for statement in module.nodes(ast.Expr):
        made = statement.value
        if not isinstance(made, _Comprehension) or len(made.generators) != 1:
            continue
        move = _move(made.value if isinstance(made, ast.DictComp) else made.elt)
        owner = receiver(move) if move is not None else None
        if move is None or not isinstance(owner, ast.Name):
            continue
        whole = made.generators[0].iter
        if _are_tensors(module, statement, made, owner, whole):
            yield Dropped(statement, move, whole)


def _move(made: ast.expr) -> ast.Call | None:
    """The move that an element is, also if it is one only for tensors."""
    if isinstance(made, ast.IfExp):
        return _move(made.body) or _move(made.orelse)
    return made if isinstance(made, ast.Call) and called(made) in MOVES else None


def _are_tensors(
    module: Module, statement: ast.Expr, made: _Comprehension, owner: ast.Name, whole: ast.expr
) -> bool:
    value = module.value_of(owner)
    if value.kinds:
        return value.is_tensor and not value.may_be(Kind.WRAPPER_TENSOR)
    if isinstance(made, ast.DictComp):
        return True
    parts: list[ast.expr] = whole.elts if isinstance(whole, (ast.Tuple, ast.List)) else []
    return any(
        module.value_of(each).is_tensor or taken_as_tensor(module, statement, each) is not None
        for each in parts
    )
