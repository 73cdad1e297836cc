"""What a call pickles for other processes: by `torch.distributed`, or by a function around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.syntax.tree import SCOPES
from tensortrail.analyzer.values.functions import params_of
from tensortrail.rules.view import FunctionNode

_SENDERS = {
    "torch.distributed.all_gather_object": (1, "obj"),
    "torch.distributed.gather_object": (0, "obj"),
    "torch.distributed.broadcast_object_list": (0, "object_list"),
    "torch.distributed.send_object_list": (0, "object_list"),
    "torch.distributed.scatter_object_list": (1, "scatter_object_input_list"),
    "accelerate.utils.gather_object": (0, "object"),
    "accelerate.utils.broadcast_object_list": (0, "object_list"),
}
_NAMES = tuple(each.rpartition(".")[2] for each in _SENDERS)
_DEPTH = 2
"""How many functions are looked through."""


def sent_by(call: ast.Call, dotted: str) -> ast.expr | None:
    """The object that a function of a library is given to send."""
    if dotted not in _SENDERS:
        return None
    position, name = _SENDERS[dotted]
    named = [each.value for each in call.keywords if each.arg == name]
    return named[0] if named else call.args[position] if len(call.args) > position else None


def sent_parameters(file: ProjectFile, function: FunctionNode) -> frozenset[str]:
    """The parameters of the function that are sent as they are given."""
    if next(file.calls(*_NAMES), None) is None:
        return frozenset()
    return frozenset(_sent(file, function, _DEPTH))


def _sent(file: ProjectFile, function: FunctionNode, depth: int) -> Iterator[str]:
    parameters = params_of(function, False)
    for call in file.tree.nodes(ast.Call, function):
        if file.tree.function_of(call) is not function:
            continue
        dotted = file.qualified(call.func)
        passed = sent_by(call, dotted)
        sent = [passed] if passed is not None else _passed_on(file, function, call, dotted, depth)
        yield from (
            each.id for each in sent if isinstance(each, ast.Name) and each.id in parameters
        )


def _passed_on(
    file: ProjectFile, function: FunctionNode, call: ast.Call, dotted: str, depth: int
) -> list[ast.expr]:
    """What is passed to a function of the file that sends it."""
    inner = (each for each in function.body if isinstance(each, SCOPES) and each.name == dotted)
    callee = next(inner, None) or file.definition_named(file.local_name(dotted))
    if not depth or not isinstance(callee, SCOPES):
        return []
    sent = set(_sent(file, callee, depth - 1))
    names = params_of(callee, False)
    return [value for name, value in zip(names, call.args, strict=False) if name in sent]
