"""The lines that a value came through are read from the frames of a traceback, which still have
its variables.

A step is made only where one variable of a line may be what the value came from: it lies on the
device in question, has its type, or is the only tensor there. All else would be a guess."""

from __future__ import annotations

import ast
import itertools
import linecache
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

import torch

from tensortrail.findings import Site
from tensortrail.rules.shared.moves import MOVES
from tensortrail.tracer.identity.assigned_lines import assigned_at
from tensortrail.tracer.identity.assignments import (
    assignment,
    default_at,
    filled_at,
    parameters,
    statement_of,
)
from tensortrail.tracer.identity.inner_tensors import PLAIN, device_of
from tensortrail.tracer.identity.sites import OWNERS, USER, function_name
from tensortrail.tracer.identity.variables import variables

MOST_STEPS = 5
MOST_LOOKED_INTO = 50
"""Values of a list."""
MOST_SHOWN = 80
Frame = tuple[FrameType, int]
May = Callable[[Any], bool]
"""Whether the value of a variable may be what the operand came from."""


def lines_behind(frames: Sequence[Frame], identity: int, may: May) -> tuple[Site, ...]:
    """The nearest first: where the variable was assigned, or where its function was called."""
    own = [each for each in frames if OWNERS[each[0].f_code.co_filename] == USER]
    return tuple(_steps(own, identity, may)) if own else ()


def lies_on(device: str) -> May:
    """A tensor on that device, or a list or dict that holds one."""
    return lambda value: any(str(device_of(each)) == device for each in _tensors(value))


def has_type(dtype: str) -> May:
    """A tensor of that type, or a list or dict that holds one."""
    return lambda value: any(str(each.dtype).endswith(dtype) for each in _tensors(value))


def is_tensor(value: Any) -> bool:
    """A tensor, or a list or dict that holds one."""
    return any(True for _ in _tensors(value))


def _steps(own: list[Frame], identity: int, may: May) -> Iterator[Site]:
    frame, line = own.pop()
    statement = statement_of(frame, line)
    for _ in range(MOST_STEPS):
        found = _one_of(statement, frame, identity, may)
        if statement is None or found is None:
            return
        name, value, owner = found
        if owner is not None:
            if (at := assigned_at(owner, name)) is not None:
                if type(value) in (list, dict):
                    at = at[0], filled_at(*at, name)
                yield Site(*at, source=linecache.getline(*at).strip()[:MOST_SHOWN])
            return
        assigned = assignment(frame, name, statement.lineno)
        if assigned is not None:
            statement, identity = assigned, 0
        elif (made_at := default_at(frame, name, value)) is not None:
            source = linecache.getline(frame.f_code.co_filename, made_at).strip()[:MOST_SHOWN]
            yield Site(frame.f_code.co_filename, made_at, source=source)
            return
        elif own and name in parameters(frame):
            frame, line = own.pop()
            statement, identity = statement_of(frame, line), id(value)
        else:
            return
        if statement is not None:
            yield _site(frame, statement)


def _site(frame: FrameType, statement: ast.stmt) -> Site:
    code = frame.f_code
    text = linecache.getline(code.co_filename, statement.lineno).strip()[:MOST_SHOWN]
    return Site(code.co_filename, statement.lineno, function=function_name(code), source=text)


def _one_of(
    statement: ast.stmt | None, frame: FrameType, identity: int, may: May
) -> tuple[str, Any, Any] | None:
    """Name and value of the only variable of the statement that it may be, with the object that
    it is an attribute of; the one with that identity, if it is there."""
    found: dict[str, tuple[str, Any, Any]] = {}
    own = variables(frame)
    moved = _moved(statement) if statement else ()
    for node in _read(statement) if statement else ():
        for name, value, owner in known(node, own):
            if id(value) == identity:
                return name, value, owner
            if node not in moved and may(value):
                found[ast.unparse(node)] = name, value, owner
    return found.popitem()[1] if len(found) == 1 else None


def _read(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions that the statement takes values from."""
    whole: ast.AST = statement
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        whole = statement.iter
    for node in ast.walk(whole):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            yield node


def _moved(statement: ast.stmt) -> list[ast.AST]:
    """`x` of `f(x.to(device))`: what the statement goes on with lies elsewhere."""
    calls = (each.func for each in ast.walk(statement) if isinstance(each, ast.Call))
    moves = (each for each in calls if isinstance(each, ast.Attribute) and each.attr in MOVES)
    return [inner for each in moves for inner in ast.walk(each.value)]


def known(node: ast.expr, own: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """What is known of it without running code of the program."""
    if isinstance(node, ast.Name) and node.id in own:
        yield node.id, own[node.id], None
    elif isinstance(node, ast.Attribute):
        for _, owner, _ in known(node.value, own):
            try:
                kept = object.__getattribute__(owner, "__dict__")
            except AttributeError:
                continue
            module = isinstance(owner, torch.nn.Module)
            for held in (kept, *((owner._parameters, owner._buffers) if module else ())):
                if isinstance(held, Mapping) and node.attr in held:
                    yield node.attr, held[node.attr], owner


def _tensors(value: Any) -> Iterator[Any]:
    """The tensor with dimensions that it is, or those that it holds."""
    held: Iterable[Any] = (value,)
    if type(value) in (list, tuple, dict):
        held = itertools.islice(value.values() if type(value) is dict else value, MOST_LOOKED_INTO)
    yield from (each for each in held if type(each) in PLAIN and each.dim())
