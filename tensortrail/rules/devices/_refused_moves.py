"""Moves of a recorded run that a library refused or left without effect, taken out."""

from __future__ import annotations

import ast

from tensortrail.findings import Edit, Fix, Safety, Site
from tensortrail.rules import Timeline
from tensortrail.rules.shared.mends import lines_removed, source_of, statement_at


def without_the_move(timeline: Timeline, site: Site | None) -> Fix:
    """The model stays where the library has put it."""
    tree = timeline.tree(site.file) if site is not None else None
    statement = statement_at(tree, site.line) if tree is not None and site is not None else None
    move = _move(statement) if statement is not None else None
    text = "leave it where it is: take the move out"
    if site is None or statement is None or move is None:
        return Fix(text, Safety.DISPLAY, ())
    text = f"leave it where it is: take `.{ast.unparse(move).rpartition('.')[2]}` out"
    edit = _taken_out(timeline, site.file, statement, move)
    return timeline.fix(text, Safety.UNSAFE, edit) or Fix(text, Safety.DISPLAY, ())


def _move(statement: ast.stmt) -> ast.Call | None:
    calls = (each for each in ast.walk(statement) if isinstance(each, ast.Call))
    moves = [each for each in calls if _owner(each) is not None]
    return moves[0] if len(moves) == 1 else None


def _owner(call: ast.Call) -> ast.expr | None:
    is_move = isinstance(call.func, ast.Attribute) and call.func.attr in ("to", "cuda", "cpu")
    return call.func.value if is_move and isinstance(call.func, ast.Attribute) else None


def _taken_out(timeline: Timeline, file: str, statement: ast.stmt, move: ast.Call) -> Edit:
    """The whole line where nothing of it is left to do, else the call alone."""
    owner = _owner(move)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    alone = isinstance(statement, (ast.Expr, ast.Assign)) and statement.value is move
    again = target is None or (owner is not None and ast.unparse(target) == ast.unparse(owner))
    if alone and again and isinstance(owner, (ast.Name, ast.Attribute)):
        return lines_removed(timeline, file, statement.lineno, statement.end_lineno or 0)
    return timeline.replace(file, move, source_of(timeline, file, owner or move))
