"""The functions of a file."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.view import FunctionNode, Module


def functions(module: Module) -> Iterator[FunctionNode]:
    """Every function and method of the file."""
    yield from module.nodes(ast.FunctionDef)
    yield from module.nodes(ast.AsyncFunctionDef)
