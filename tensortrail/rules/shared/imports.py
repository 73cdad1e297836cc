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
