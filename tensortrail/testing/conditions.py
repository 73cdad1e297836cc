"""Conditions, turned."""

from __future__ import annotations

import ast


def denied(test: ast.expr) -> ast.expr:
    """`not c` of `c`, and `c` of `not c`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    return ast.UnaryOp(ast.Not(), test)
