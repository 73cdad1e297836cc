"""The functions of a file."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.view import FunctionNode, Module


def functions(module: Module) -> Iterator[FunctionNode]:
    """Every function and method of the file."""
    yield from module.nodes(ast.FunctionDef)
    yield from module.nodes(ast.AsyncFunctionDef)


def outermost_function(module: Module, node: ast.AST) -> FunctionNode | None:
    """The function around the node that has none around it; None at the top of the file."""
    found, around = None, module.function_of(node)
    while around is not None:
        found, around = around, module.function_of(around)
    return found
