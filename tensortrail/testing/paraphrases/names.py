"""Other names for what is local to a function."""

from __future__ import annotations

import ast
import re

from tensortrail.rules.shared.functions import parameters
from tensortrail.testing.paraphrases.rewriting import FUNCTIONS, FunctionNode, Rewrite, of_tree

_SAID_BY_ITS_NAME = re.compile(
    r"offload|onload|settings|config|cfg|polic|options|kwargs|^args$|device_map"
)
"""A setting is known by its name: renamed, it is another setting."""
_HANDED_OVER = frozenset({"self", "cls", "func", "types"})


class _Renamer(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self._names.get(node.id, node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self._names.get(node.arg, node.arg)
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        node.name = self._names.get(node.name, node.name) if node.name else None
        return self.generic_visit(node)


def _rename_locals(tree: ast.Module) -> None:
    called_by_name = {
        each.arg for call in ast.walk(tree) if isinstance(call, ast.Call) for each in call.keywords
    }
    for function in _outermost(tree):
        shared = {
            name
            for each in ast.walk(function)
            if isinstance(each, (ast.Global, ast.Nonlocal))
            for name in each.names
        }
        found = _bound_in(function) - shared - _HANDED_OVER
        found -= {each for each in found if _SAID_BY_ITS_NAME.search(each)}
        found -= {each.arg for each in parameters(function) if each.arg in called_by_name}
        found -= _called_in(function)
        if "locals" not in {each.id for each in ast.walk(function) if isinstance(each, ast.Name)}:
            _Renamer({name: f"v{at}" for at, name in enumerate(sorted(found))}).visit(function)


def _called_in(function: FunctionNode) -> set[str]:
    """A function that is handed in is known by its name, like any other."""
    calls = (each.func for each in ast.walk(function) if isinstance(each, ast.Call))
    return {each.id for each in calls if isinstance(each, ast.Name)}


def _outermost(tree: ast.AST) -> list[FunctionNode]:
    found: list[FunctionNode] = []
    for node in ast.iter_child_nodes(tree):
        found += [node] if isinstance(node, FUNCTIONS) else _outermost(node)
    return found


def _bound_in(function: FunctionNode) -> set[str]:
    below = list(ast.walk(function))
    inner = {each.name for each in below if isinstance(each, (*FUNCTIONS, ast.ClassDef))}
    stored = {
        each.id for each in below if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    caught = {each.name for each in below if isinstance(each, ast.ExceptHandler) and each.name}
    return (stored | caught | {each.arg for each in parameters(function)}) - inner


REWRITES: dict[str, Rewrite] = {"rename": of_tree(_rename_locals)}
