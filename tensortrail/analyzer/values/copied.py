"""Functions of a file that bring what they are given to the CPU, whatever it holds."""

from __future__ import annotations

import ast

from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.rules.shared.moves import MOVES, moves_to_cpu


def copies_to_the_cpu(file: ProjectFile, call: ast.Call) -> bool:
    """`host_copy(state)`, where a function of this file moves its argument to the CPU, or each
    part of it by calling itself, and moves nothing to elsewhere."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    found = [each for each in file.tree.nodes(ast.FunctionDef) if each.name == name]
    if len(found) != 1 or not call.args or not found[0].args.args:
        return False
    function, first = found[0], found[0].args.args[0].arg
    moves = list(file.calls(*MOVES, inside=function))
    of_argument = any(_root(each.func) == first for each in moves)
    return of_argument and all(moves_to_cpu(file, each) for each in moves)


def _root(node: ast.AST) -> str:
    """`x` of `x.detach().cpu`."""
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
