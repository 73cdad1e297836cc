"""A library's Python code refused what the program's line gave it: the tensors of that line."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from traceback import walk_tb
from typing import Any, NamedTuple

from tensortrail.tracer.explaining.other_sizes import refuses_sizes
from tensortrail.tracer.identity.assignments import statement_of
from tensortrail.tracer.identity.inner_tensors import PLAIN
from tensortrail.tracer.identity.lines_behind import Frame, known
from tensortrail.tracer.identity.sites import OWNERS, USER
from tensortrail.tracer.identity.variables import variables

MOST = 8


class Given(NamedTuple):
    called: str
    """What the line calls, as it is written."""
    tensors: list[tuple[str, Any, Any]]
    """Name, tensor, and the variable's value that has it."""


def given(error: BaseException, innermost: Frame | None) -> Given | None:
    """What the first call of the program's line was given, if a library refuses its sizes."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    if innermost is None or not isinstance(error, (RuntimeError, ValueError)):
        return None
    if OWNERS[frames[-1].f_code.co_filename] == USER or not refuses_sizes(str(error)):
        return None
    frame, line = innermost
    statement = statement_of(frame, line)
    nodes = ast.walk(statement) if statement else ()
    calls = [each for each in nodes if isinstance(each, ast.Call)]
    if not calls:
        return None
    own = variables(frame)
    found = (each for node in _arguments(calls[0]) for each in _tensors(node, own))
    tensors = {each[0]: each for each in found}
    return Given(ast.unparse(calls[0].func), list(tensors.values())[:MOST]) if tensors else None


def _arguments(call: ast.Call) -> Iterator[ast.expr]:
    yield from call.args
    yield from (each.value for each in call.keywords)


def _tensors(node: ast.expr, own: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for inner in ast.walk(node):
        if isinstance(inner, (ast.Name, ast.Attribute)):
            for _, value, _ in known(inner, own):
                name = ast.unparse(inner)
                if type(value) in PLAIN:
                    yield name, value, value
                elif type(value) in (list, tuple):
                    for place, each in enumerate(value[:MOST]):
                        if type(each) in PLAIN:
                            yield f"{name}[{place}]", each, value
