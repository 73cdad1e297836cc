"""A name that holds what a function gave back, where the program takes it for its model."""

from __future__ import annotations

import ast
import re
from traceback import walk_tb
from types import FrameType
from typing import Any

from torch.nn import Module

from tensortrail.tracer.identity.assignments import assignment, statement_of
from tensortrail.tracer.identity.sites import OWNERS, USER
from tensortrail.tracer.identity.storages import Storages
from tensortrail.tracer.identity.variables import variables
from tensortrail.tracer.noticing.escaped.told import at, told

_SAYS = re.compile(r"'(tuple|list|NoneType)' object (?:is not callable|has no attribute '\w+')")


def result_not_model(error: BaseException, storages: Storages) -> dict[str, Any] | None:
    found = _SAYS.search(str(error)) if isinstance(error, (TypeError, AttributeError)) else None
    steps = list(walk_tb(error.__traceback__))
    if found is None or not steps or OWNERS[steps[-1][0].f_code.co_filename] != USER:
        return None
    frame, line = steps[-1]
    own = {**frame.f_globals, **variables(frame)}
    for name in _used(frame, line):
        value = own.get(name)
        if name in own and type(value).__name__ == found[1]:
            made = assignment(frame, name, line)
            if isinstance(made, ast.Assign) and isinstance(made.value, ast.Call):
                where = at(frame.f_code.co_filename, made.lineno)
                return (
                    _nothing(name, made, where) if value is None else _of(name, value, made, where)
                )
    return None


def _used(frame: FrameType, line: int) -> list[str]:
    """The variables of the line that are called, or asked for an attribute."""
    statement = statement_of(frame, line)
    nodes = ast.walk(statement) if statement else ()
    behind = [
        node.func if isinstance(node, ast.Call) else node.value
        for node in nodes
        if isinstance(node, (ast.Call, ast.Attribute))
    ]
    return [each.id for each in behind if isinstance(each, ast.Name)]


def _of(name: str, value: Any, made: ast.Assign, where: str) -> dict[str, Any] | None:
    place = next((n for n, each in enumerate(value) if isinstance(each, Module)), None)
    if place is None:
        return None
    before = "_, " * place
    after = {0: "", 1: ", other"}.get(len(value) - place - 1, ", *others")
    kinds = ", ".join(type(each).__name__ for each in value)
    return told(
        f"`{name}` is a {type(value).__name__} of {kinds}: `{_function(made)}`{where} gives more "
        "than the model",
        f"take it apart there: `{before}{name}{after} = ...`",
    )


def _nothing(name: str, made: ast.Assign, where: str) -> dict[str, Any] | None:
    """A function that was given the model, changed it and returned None."""
    call = made.value
    given = [each.id for each in getattr(call, "args", ()) if isinstance(each, ast.Name)]
    if name not in given:
        return None
    return told(
        f"`{name}` is None: `{_function(made)}`{where} changes it in place and gives nothing back",
        f"call it without `{name} =`",
    )


def _function(made: ast.Assign) -> str:
    return ast.unparse(made.value.func) if isinstance(made.value, ast.Call) else ""
