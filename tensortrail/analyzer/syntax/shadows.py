"""Names imported from torch that a function binds for itself: its `device` is no `torch.device`."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TypeAlias

from tensortrail.analyzer.syntax.names import dotted_name
from tensortrail.analyzer.syntax.tree import Tree
from tensortrail.rules.view import FunctionNode

Shadows: TypeAlias = dict[str, set[FunctionNode]]
"""The functions that bind an imported name, by name."""
_BOUND = rb"\bNAME\s*[,:)=]"
"""A text without this neither binds the name nor takes it as an argument."""


def shadows(tree: Tree, imports: Mapping[str, str], text: bytes) -> Shadows:
    """Arguments and local variables that have the name of something of torch's that is imported.

    The text is asked first: files that are read for their facts alone are not walked."""
    imported = {name for name, whole in imports.items() if _may_be_bound(name, whole, text)}
    found: Shadows = {}
    if not imported:
        return found
    for name, function in _bound_in_functions(tree, imported):
        found.setdefault(name, set()).add(function)
    for name, function in _imported_in_functions(tree, found):
        found[name].discard(function)
    return found


def is_shadowed(tree: Tree, found: Shadows, node: ast.AST) -> bool:
    """What the expression begins with is a variable of a function around it."""
    functions = found.get(dotted_name(node).partition(".")[0], set())
    return any(
        above in functions and isinstance(below, ast.stmt)  # not its annotations and defaults
        for below, above in pairwise([node, *tree.ancestors(node)])
    )


def _may_be_bound(name: str, whole: str, text: bytes) -> bool:
    if not whole.startswith("torch.") or not name.islower():
        return False
    return re.search(_BOUND.replace(b"NAME", name.encode()), text) is not None


def _bound_in_functions(tree: Tree, imported: Container[str]) -> Iterator[tuple[str, FunctionNode]]:
    for argument in tree.nodes(ast.arg):
        function = tree.function_of(argument) if argument.arg in imported else None
        if function is not None and not _is_of_lambda(tree, argument):
            yield argument.arg, function
    for name in tree.nodes(ast.Name):
        if name.id in imported and isinstance(name.ctx, ast.Store):
            function = tree.function_of(name)
            if function is not None:
                yield name.id, function


def _is_of_lambda(tree: Tree, argument: ast.arg) -> bool:
    arguments = tree.parent(argument)
    return arguments is not None and isinstance(tree.parent(arguments), ast.Lambda)


def _imported_in_functions(tree: Tree, names: Iterable[str]) -> Iterator[tuple[str, FunctionNode]]:
    """What a function imports, or takes from the file by `global`, is no other thing there."""
    wanted = set(names)
    if not wanted:
        return
    for statement in (*tree.imports(), *tree.nodes(ast.Global)):
        function = tree.function_of(statement)
        if function is None:
            continue
        for name in wanted.intersection(_names(statement)):
            yield name, function


def _names(statement: ast.AST) -> Iterator[str]:
    if isinstance(statement, ast.Global):
        yield from statement.names
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        for alias in statement.names:
            yield alias.asname or alias.name.partition(".")[0]
