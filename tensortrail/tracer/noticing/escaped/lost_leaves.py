"""A gradient that was never there, as it was asked of a tensor that had been computed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from traceback import walk_tb
from typing import Any

from torch import Tensor
from torch._C import DisableTorchFunction

from tensortrail.tracer.identity.assignments import assignment, statement_of
from tensortrail.tracer.identity.sites import OWNERS, USER, file_of
from tensortrail.tracer.identity.storages import Storages
from tensortrail.tracer.identity.variables import variables

NONE = "NoneType"


def lost_leaf(error: BaseException, storages: Storages) -> dict[str, Any] | None:
    """Where the failing line reads `x.grad`, which is None."""
    if not isinstance(error, (TypeError, AttributeError)) or NONE not in str(error):
        return None
    users = [each for each in walk_tb(error.__traceback__) if OWNERS[file_of(each[0])] == USER]
    if not users:
        return None
    frame, line = users[-1]
    statement = statement_of(frame, line)
    own = {**frame.f_globals, **variables(frame)}
    for name in _read(statement) if statement is not None else ():
        tensor = own.get(name)
        if isinstance(tensor, Tensor) and _has_none(tensor):
            entry = storages.entry(tensor)
            made = assignment(frame, name, line)
            return {
                "no leaf": name,
                "by": type(tensor.grad_fn).__name__,
                "grad of": entry.number if entry is not None else 0,
                "made": [file_of(frame), made.lineno] if made is not None else [],
            }
    return None


def _read(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr="grad"):
                yield name


def _has_none(tensor: Tensor) -> bool:
    with DisableTorchFunction():
        return tensor.requires_grad and not tensor.is_leaf and not tensor.retains_grad
