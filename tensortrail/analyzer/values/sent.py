"""What a call pickles for other processes: by `torch.distributed`, or by a function around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.syntax.tree import SCOPES
from tensortrail.analyzer.values.functions import params_of
from tensortrail.rules.view import FunctionNode

_OBJECT = "_object"
_SENDERS = {
    "torch.distributed.all_gather_object": (1, "obj"),
    "torch.distributed.gather_object": (0, "obj"),
    "torch.distributed.broadcast_object_list": (0, "object_list"),
    "torch.distributed.send_object_list": (0, "object_list"),
    "torch.distributed.scatter_object_list": (1, "scatter_object_input_list"),
    "accelerate.utils.gather_object": (0, "object"),
    "accelerate.utils.broadcast_object_list": (0, "object_list"),
}
_DEPTH = 2
"""How many functions inside of each other are looked through."""


def sent_by(call: ast.Call, dotted: str) -> ast.expr | None:
    """The object that a function of a library is given to send."""
    if dotted not in _SENDERS:
        return None
    position, name = _SENDERS[dotted]
    named = [each.value for each in call.keywords if each.arg == name]
    return named[0] if named else call.args[position] if len(call.args) > position else None


def sent_parameters(file: ProjectFile, function: FunctionNode) -> frozenset[str]:
    """The parameters of the function that are sent as they are given."""
    if _OBJECT not in file.source.text(*file.source.span(function)):
        return frozenset()
    return frozenset(_sent(file, function, _DEPTH))


def _sent(file: ProjectFile, function: FunctionNode, depth: int) -> Iterator[str]:
    parameters = params_of(function, False)
    for call in file.tree.nodes(ast.Call, function):
        passed = [sent_by(call, file.qualified(call.func))]
        if depth and file.tree.function_of(call) is function:
            passed += _passed_inside(file, function, call, depth)
        for each in passed:
            owner = file.tree.function_of(call)
            if owner is function and isinstance(each, ast.Name) and each.id in parameters:
                yield each.id


def _passed_inside(
    file: ProjectFile, function: FunctionNode, call: ast.Call, depth: int
) -> list[ast.expr | None]:
    """What is passed to a function that is defined inside, and that sends it."""
    inner = [
        each
        for each in function.body
        if isinstance(each, SCOPES)
        and isinstance(call.func, ast.Name)
        and each.name == call.func.id
    ]
    found: list[ast.expr | None] = []
    for each in inner:
        sent = set(_sent(file, each, depth - 1))
        names = params_of(each, False)
        found += [value for name, value in zip(names, call.args, strict=False) if name in sent]
    return found
