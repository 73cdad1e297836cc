"""Statements that are nothing but moves, casts or views with a dropped result, in the text and in
the code."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.patterns import pattern
from tensortrail.rules.devices.shared.moves.branches_of_moves import never_runs
from tensortrail.rules.devices.shared.moves.dropped_on_purpose import (
    is_each_device_in_turn,
    is_provoked,
)
from tensortrail.rules.devices.shared.moves.what_is_moved import (
    IN_PLACE_NAMES,
    what_is_moved,
    works_in_place,
)
from tensortrail.rules.shared.moves import CASTS, MOVES
from tensortrail.rules.view import Module

_SHAPES = frozenset(
    "expand flatten masked_fill permute reshape squeeze t transpose unsqueeze view".split()
)
"""What gives a tensor of another shape or other values, and leaves the tensor as it is."""
_MOVES = sorted(MOVES | CASTS | _SHAPES | {"float", "detach", "contiguous", "clone"})
WORDS = tuple(f".{name}(" for name in _MOVES)
_VERB = rb"\.(?:" + "|".join(_MOVES).encode() + rb")\("
_ARGUMENTS = rb"[^()\n]*(?:\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)[^()\n]*)*\)"
_NOT_DROPPED = (
    rb"(?![ \t]*(?:(?:return|yield|raise|assert|del|for|with|import|from)\b|#|>>>|\.\.\. "
    rb"|[\w.]+\[[^()\n]*\][ \t]*=[^=]"
    rb"|(?:[\w.]*[._])?(?:" + IN_PLACE_NAMES.encode() + rb")\d*" + _VERB + rb"))"
)
STATEMENT = pattern(
    _NOT_DROPPED
    + rb"(?:[^\n]*[;:](?![^=\n(\[{.]*[)\]}])" + _NOT_DROPPED  # begins a line, or follows these
    + rb")?[^=\n(\[{]*(?:[(\[{)\]}][^\n]*)?" + _VERB  # no assignment before it
    + rb"(?:" + _ARGUMENTS + rb"[ \t]*(?:[;#\\\r\n]|$)|(?!" + _ARGUMENTS + rb"))"
)  # fmt: skip


def dropped_moves(module: Module) -> Iterator[tuple[ast.Expr, ast.Call, ast.expr]]:
    """Statements that are nothing but moves, `x.to(d)` or `x.to(d), y.to(d)`: each move, and what
    is moved."""
    for statement in module.nodes(ast.Expr):
        value = statement.value
        for call in value.elts if isinstance(value, ast.Tuple) else [value]:
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            if call.func.attr not in _MOVES or is_each_device_in_turn(module, call):
                continue
            if call.func.attr in _SHAPES and works_in_place(call):
                continue
            if not (
                is_provoked(module, statement) or never_runs(module, statement, what_is_moved(call))
            ):
                yield statement, call, call.func.value


def is_loop_variable(module: Module, name: ast.Name) -> bool:
    return any(
        isinstance(up, (ast.For, ast.AsyncFor))
        and any(isinstance(each, ast.Name) and each.id == name.id for each in ast.walk(up.target))
        for up in module.ancestors(name)
    )
