"""What one look at the statements of a file tells, without one into expressions."""

from __future__ import annotations

import ast
from typing import NamedTuple

from tensortrail.analyzer.syntax.blocks import SCOPES, block_fields

_IMPORTS = (ast.Import, ast.ImportFrom)


class Outline(NamedTuple):
    """What one look at the statements of a file tells, without one into expressions."""

    definitions: list[tuple[str, ast.AST]]
    """Classes and functions by their dotted name in the file."""
    imports: list[ast.AST]
    holders: list[ast.AST]
    """What holds statements, handlers or cases."""


def outline(root: ast.AST) -> Outline:
    found = Outline([], [], [])
    todo: list[tuple[ast.AST, str]] = [(root, "")]
    while todo:
        node, prefix = todo.pop()
        if isinstance(node, _IMPORTS):
            found.imports.append(node)
        fields = block_fields(type(node))  # type: ignore[arg-type]
        if not fields:
            continue
        found.holders.append(node)
        if isinstance(node, (*SCOPES, ast.ClassDef)):
            found.definitions.append((prefix + node.name, node))
            prefix += f"{node.name}."
        for name in reversed(fields):
            todo += [(each, prefix) for each in reversed(getattr(node, name, None) or ())]
    return found
