"""Lists and dicts that a loop fills with moved tensors, and that nobody reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.shared.functions import is_declared_outside
from tensortrail.rules.shared.moves import MOVES
from tensortrail.rules.shared.objects import called, is_empty_literal, receiver
from tensortrail.rules.view import FunctionNode, Module
from tensortrail.rules.words import Kind

PUT_IN = re.compile(rb"[^\n]*(?:\]\s*=|\.append\()[^=\n]*\.(?:to|cuda|cpu)\(")
_MADE = frozenset({"dict", "list", "OrderedDict", "defaultdict"})
_Loop = ast.For | ast.AsyncFor


class Filled(NamedTuple):
    made: ast.Assign
    move: ast.Call
    whole: ast.expr
    """What the loop goes through."""


def filled_for_nothing(module: Module) -> Iterator[Filled]:
    """`moved = {}`, then `moved[key] = value.cpu()` for each of a dict, and no line that takes
    `moved`."""
    for made in module.nodes(ast.Assign):
        function, name = module.function_of(made), made.targets[0]
        if function is None or not isinstance(name, ast.Name) or not _is_empty(made.value):
            continue
        uses = [each for each in module.uses(name.id, function) if each is not name]
        values = [_put_in(module, each) for each in uses]
        if values and None not in values and not _is_read_otherwise(module, function, name.id):
            moves = (_moved(module, each) for each in values if each is not None)
            yield from (Filled(made, *found) for found in moves if found is not None)


def _is_empty(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return called(node) in _MADE and not node.keywords
    return is_empty_literal(node)


def _put_in(module: Module, use: ast.Name) -> ast.expr | None:
    """`x` of `found[key] = x` and `found.append(x)`; None for any other use."""
    above = module.parent(use)
    statement = module.statement_of(use)
    if isinstance(above, ast.Subscript) and isinstance(statement, ast.Assign):
        return statement.value if statement.targets == [above] else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or receiver(call) is not use or called(call) != "append":
        return None
    return call.args[0] if len(call.args) == 1 else None


def _moved(module: Module, value: ast.expr) -> tuple[ast.Call, ast.expr] | None:
    """The move of what a loop gives, and what the loop goes through."""
    owner = receiver(value) if isinstance(value, ast.Call) and called(value) in MOVES else None
    if not isinstance(value, ast.Call) or not isinstance(owner, ast.Name):
        return None
    if module.value_of(owner).may_be(Kind.MODULE):
        return None
    for up in module.ancestors(value):
        if isinstance(up, _Loop) and owner.id in {
            each.id for each in ast.walk(up.target) if isinstance(each, ast.Name)
        }:
            return value, up.iter
    return None


def _is_read_otherwise(module: Module, function: FunctionNode, name: str) -> bool:
    """`global moved`, or what reads names by their text."""
    by_text = module.calls("locals", "eval", "exec", inside=function)
    return is_declared_outside(module, function, name) or any(by_text)
