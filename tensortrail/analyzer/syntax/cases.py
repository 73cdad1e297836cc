"""`match` read as the conditions it stands for."""

from __future__ import annotations

import ast
from typing import TypeVar

E = TypeVar("E", bound=ast.expr)


def condition_of(match: ast.Match, case: ast.match_case) -> tuple[ast.expr, bool] | None:
    """The condition that the pattern asks of the subject, and whether it must hold; None for a
    pattern that asks nothing, or more than one simple thing."""
    return _condition(match.subject, case.pattern)


def is_open(case: ast.match_case) -> bool:
    """`case _:` and `case name:` take whatever is left."""
    return isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None


def _condition(subject: ast.expr, pattern: ast.pattern) -> tuple[ast.expr, bool] | None:
    if isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
        return _condition(subject, pattern.pattern)
    if isinstance(pattern, ast.MatchSingleton):
        if pattern.value is None:
            none = _placed(ast.Constant(None), pattern)
            return _compared(subject, ast.Is(), none, pattern), True
        return _asked(subject), bool(pattern.value)
    if isinstance(pattern, ast.MatchValue):
        return _compared(subject, ast.Eq(), pattern.value, pattern), True
    if isinstance(pattern, ast.MatchClass) and not (pattern.patterns or pattern.kwd_patterns):
        called = _placed(ast.Name("isinstance", ast.Load()), subject)
        return _spanning(ast.Call(called, [subject, pattern.cls], []), subject, pattern), True
    return None


def _asked(subject: ast.expr) -> ast.expr:
    """`c` of `match bool(c)`."""
    if isinstance(subject, ast.Call) and getattr(subject.func, "id", "") == "bool":
        return subject.args[0] if len(subject.args) == 1 else subject
    return subject


def _compared(
    subject: ast.expr, op: ast.cmpop, other: ast.expr, pattern: ast.pattern
) -> ast.Compare:
    return _spanning(ast.Compare(subject, [op], [other]), subject, pattern)


def _placed(node: E, at: ast.AST) -> E:
    return ast.copy_location(node, at)


def _spanning(node: E, first: ast.expr, last: ast.pattern) -> E:
    ast.copy_location(node, first)
    node.end_lineno, node.end_col_offset = last.end_lineno, last.end_col_offset
    return node
