"""Under `vmap`: what is mapped was to be written into a tensor that is not."""

from __future__ import annotations

import ast
from traceback import walk_tb
from types import FrameType
from typing import Any

from torch import Tensor
from torch._C._functorch import is_batchedtensor
from torch.nn import Module

from tensortrail.tracer.identity.assignments import assignment, statement_of
from tensortrail.tracer.identity.sites import OWNERS, USER
from tensortrail.tracer.identity.storages import Storages
from tensortrail.tracer.identity.variables import variables
from tensortrail.tracer.noticing.escaped.told import at, frames_of, owners, told

VMAP = "torch/_functorch/vmap.py"
OF_NORMS = "running_mean or running_var"
OF_WRITES = ("output with shape", "vmap: ")


def vmapped_write(error: BaseException, _: Storages) -> dict[str, Any] | None:
    said = str(error)
    if not isinstance(error, RuntimeError) or not any(map(_is_vmap, frames_of(error))):
        return None
    if OF_NORMS in said:
        return _of_norm(error)
    return _of_line(error) if said.startswith(OF_WRITES) else None


def _is_vmap(frame: FrameType) -> bool:
    return frame.f_code.co_filename.replace("\\", "/").endswith(VMAP)


def _of_norm(error: BaseException) -> dict[str, Any]:
    norm = next((each for each in owners(error) if isinstance(each, Module)), None)
    kind = type(norm).__name__ if norm is not None else "a batch norm"
    return told(
        f"{kind} writes its running statistics in place, and `vmap` maps over its input but not "
        "over them",
        "map over the buffers too: take them as an argument of the mapped function, as "
        "`stack_module_state` gives them; or call `.eval()` first, or make the layer with "
        "`track_running_stats=False`",
    )


def _of_line(error: BaseException) -> dict[str, Any] | None:
    for frame, line in reversed(list(walk_tb(error.__traceback__))):
        if OWNERS[frame.f_code.co_filename] == USER:
            name = _written(statement_of(frame, line))
            value = variables(frame).get(name)
            if not isinstance(value, Tensor) or is_batchedtensor(value):
                return None
            made = assignment(frame, name, line)
            where = f", made{at(frame.f_code.co_filename, made.lineno)}," if made else ""
            return told(
                f"`{name}`{where} is one tensor for all that `vmap` maps over, and cannot take "
                "different values for each",
                "make it from a tensor that is mapped, as in `x.new_zeros(...)`, or write "
                f"`{name} = {name} + ...`, which makes a new one",
            )
    return None


def _written(statement: ast.stmt | None) -> str:
    """The variable that the statement changes in place."""
    match statement:
        case ast.AugAssign(target=ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name))):
            return name
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name))]):
            return name
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method))):
            return name if method.endswith("_") else ""
    return ""
