"""Blocks of statements, and where control never gets to the end of one."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Sequence
from functools import cache
from typing import Any

from tensortrail.rules.shared.objects import last_name

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef)
"""What has names of its own."""
_BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")


@cache
def block_fields(kind: type[ast.AST]) -> tuple[str, ...]:
    return tuple(name for name in _BLOCKS if name in kind._fields)


def blocks_of(node: ast.AST) -> Iterator[list[Any]]:
    """The lists of statements (handlers, cases) that a node holds."""
    for name in block_fields(type(node)):  # type: ignore[arg-type]
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block


def leaves(statement: ast.stmt, known: Container[ast.AST]) -> bool:
    """Control never passes from this statement to the next one of its block.

    `known` holds those of the statements inside of it that do so."""

    def ends(block: Sequence[ast.stmt]) -> bool:
        return any(each in known for each in block)

    if isinstance(statement, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
        return True
    if isinstance(statement, ast.If):
        return ends(statement.body) and ends(statement.orelse)
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return ends(statement.body) and not suppresses(statement)
    if isinstance(statement, ast.Try):
        tried = ends(statement.body) or ends(statement.orelse)
        handled = all(ends(handler.body) for handler in statement.handlers)
        return ends(statement.finalbody) or (tried and handled)
    return False


def suppresses(statement: ast.With | ast.AsyncWith) -> bool:
    """`with suppress(...)`, `with raises(...)`: the body may end anywhere, and the code goes on."""
    called = (each.context_expr for each in statement.items)
    return any(
        isinstance(each, ast.Call) and last_name(each.func) in ("suppress", "raises")
        for each in called
    )
