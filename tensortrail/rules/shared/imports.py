"""What a file imports."""

from __future__ import annotations

import ast

from tensortrail.rules.view import Module


def imported_packages(module: Module) -> set[str]:
    """The packages of the file's imports."""
    whole = {each.name for node in module.nodes(ast.Import) for each in node.names}
    parts = {node.module or "" for node in module.nodes(ast.ImportFrom)}
    return {each.partition(".")[0] for each in whole | parts}


def imports_torch(module: Module) -> bool:
    """`import torch`, under its own name."""
    return any(
        alias.name == "torch" and alias.asname is None
        for node in module.nodes(ast.Import)
        for alias in node.names
    )


def imported_names(tree: ast.AST) -> dict[str, str]:
    """What the names that a piece of source imports stand for: `th` is `torch`."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {each.asname: each.name for each in node.names if each.asname}
        elif isinstance(node, ast.ImportFrom):
            owner = node.module or ""
            found |= {each.asname or each.name: f"{owner}.{each.name}" for each in node.names}
    return found
