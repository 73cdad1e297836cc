"""Moves of a recorded run that a library refused or left without effect, taken out."""

from __future__ import annotations

import ast

from tensortrail.findings import Edit, Fix, Safety, Site
from tensortrail.rules import Timeline
from tensortrail.rules.shared.mends import (
    edited,
    lines_removed,
    source_of,
    statement_of,
)
from tensortrail.rules.shared.moves import MOVES


def without_the_move(timeline: Timeline, site: Site | None) -> Fix:
    """The model stays where the library has put it."""
    statement = statement_of(timeline, site)
    found = _move(statement) if statement is not None else None
    if site is None or statement is None or found is None:
        return Fix("leave it where it is: take the move out", Safety.DISPLAY, ())
    move, owner = found
    shown = ast.unparse(move).removeprefix(ast.unparse(owner))
    edit = _taken_out(timeline, site.file, statement, move, owner)
    return edited(timeline, f"leave it where it is: take `{shown}` out", edit)


def _move(statement: ast.stmt) -> tuple[ast.Call, ast.expr] | None:
    """The only call that moves something, and what it moves."""
    moves = [
        (node, node.func.value)
        for node in ast.walk(statement)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in MOVES
    ]
    return moves[0] if len(moves) == 1 else None


def _taken_out(
    timeline: Timeline, file: str, statement: ast.stmt, move: ast.Call, owner: ast.expr
) -> Edit:
    """The whole line where nothing of it is left to do, else the call alone."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    alone = isinstance(statement, (ast.Expr, ast.Assign)) and statement.value is move
    again = target is None or ast.unparse(target) == ast.unparse(owner)
    if alone and again and isinstance(owner, (ast.Name, ast.Attribute)):
        return lines_removed(timeline, file, statement.lineno, statement.end_lineno or 0)
    return timeline.replace(file, move, source_of(timeline, file, owner))
