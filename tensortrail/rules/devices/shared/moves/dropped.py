"""How bad it is that the result of a move is dropped."""

from __future__ import annotations

import ast

from tensortrail.findings import Severity
from tensortrail.rules import Module
from tensortrail.rules.devices.shared.moves.branches_of_moves import is_only_if_tensor
from tensortrail.rules.devices.shared.moves.harmlessly_dropped import (
    is_answered,
    is_deleted_next,
    is_done_with,
    is_frozen_next,
    is_in_order,
    is_left_to_its_default,
    is_loaded_anyway,
    is_made_like_another,
    is_moved_by_its_class,
    is_read_by_numpy,
    is_replaced_next,
    was_moved,
)
from tensortrail.rules.devices.shared.moves.of_callers import is_left_unread, is_of_callers
from tensortrail.rules.devices.shared.moves.what_is_moved import (
    moves_bytes,
    what_is_moved,
    works_in_place,
)
from tensortrail.rules.shared.in_tests import in_tests


def weight(module: Module, call: ast.Call) -> Severity:
    """A copy that nobody keeps is waste; a move that nobody keeps leaves a tensor behind. A test
    checks less than it says then, and nothing else happens."""
    if in_tests(module):
        return Severity.NOTE
    if is_loaded_anyway(module, call) or works_in_place(call) or was_moved(module, call):
        return Severity.NOTE
    if is_moved_by_its_class(module, call) or is_frozen_next(module, call):
        return Severity.NOTE
    if is_left_to_its_default(module, call):
        return Severity.NOTE
    if isinstance(module.statement_of(call), ast.Expr) and any(
        each(module, call)
        for each in (is_replaced_next, is_deleted_next, is_done_with, is_read_by_numpy)
    ):
        return Severity.NOTE
    if moves_bytes(module, call):
        if is_answered(module, call):
            return Severity.NOTE
        moved = what_is_moved(call)
        may_be_there = (
            is_of_callers(module, moved)
            or is_made_like_another(module, call)
            or is_only_if_tensor(module, call, moved)
        )
        certain = not may_be_there and _goes_on_by_name(module, call)
        return Severity.ERROR if certain else Severity.WARNING
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    same = method == "clone" or is_in_order(call)
    return Severity.NOTE if same else Severity.WARNING


def _goes_on_by_name(module: Module, call: ast.Call) -> bool:
    """What was not moved is read further down in the function, and not only to be put into a dict
    or a list, whose reader may move it."""
    moved, statement = what_is_moved(call), module.statement_of(call)
    if not isinstance(moved, (ast.Name, ast.Attribute)) or not isinstance(statement, ast.Expr):
        return True
    shown = module.text(moved)
    return any(
        isinstance(each.ctx, ast.Load)
        and module.text(each) == shown
        and not isinstance(module.parent(each), _DISPLAYS)
        and not is_left_unread(module, each)
        for each in module.later(statement, type(moved))
    )


_DISPLAYS = (ast.Dict, ast.List, ast.Set)
