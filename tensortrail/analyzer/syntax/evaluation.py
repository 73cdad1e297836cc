"""The order in which names are evaluated, where it is not that of the source."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

_Statement = Callable[[ast.AST], ast.stmt]
_BINDING = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor)


def targets_last(names: Iterator[ast.Name], statement_of: _Statement) -> Iterator[ast.Name]:
    """The names, those that a statement binds behind those of the value that it binds them to:
    `x = f(x)` reads `x` first."""
    held: list[ast.Name] = []
    value: ast.expr | None = None
    for name in names:
        if held and (value is None or not _stands_by(name, held[0], value)):
            yield from held
            held.clear()
        if isinstance(name.ctx, ast.Load):
            yield name
            continue
        if not held:
            value = _bound_to(statement_of(name), name)
        held.append(name)
    yield from held


def _bound_to(statement: ast.stmt, name: ast.Name) -> ast.expr | None:
    """What is evaluated before the name is bound, though it stands behind it."""
    if not isinstance(statement, _BINDING):
        return None
    given = statement.iter if isinstance(statement, (ast.For, ast.AsyncFor)) else statement.value
    return given if given is not None and _at(name) < _at(given) else None


def _stands_by(name: ast.Name, first: ast.Name, value: ast.expr) -> bool:
    """Between the first target and the end of the value."""
    end = (value.end_lineno or value.lineno, value.end_col_offset or value.col_offset)
    return _at(first) <= _at(name) < end


def _at(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset
