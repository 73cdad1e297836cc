"""The lines that a value came through are read from the frames of a traceback, which still have
its variables.

A step is made only where one variable of a line lies on the device in question: all else would be
a guess."""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

import torch

from tensortrail.findings import Site
from tensortrail.rules.shared.mends import statement_at
from tensortrail.tracer.identity.assigned_lines import assigned_at
from tensortrail.tracer.identity.sites import OWNERS, USER, function_name
from tensortrail.tracer.identity.storages import PLAIN, device_of
from tensortrail.tracer.identity.variables import variables

MOST_STEPS = 5
MOST_LOOKED_INTO = 50
"""Values of a list."""
MOST_SHOWN = 80
Frame = tuple[FrameType, int]
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def lines_behind(frames: Sequence[Frame], identity: int, device: str) -> tuple[Site, ...]:
    """The nearest first: where the variable was assigned, or where its function was called."""
    own = [each for each in frames if OWNERS[each[0].f_code.co_filename] == USER]
    return tuple(_steps(own, identity, device)) if own else ()


def _steps(own: list[Frame], identity: int, device: str) -> Iterator[Site]:
    frame, line = own.pop()
    statement = _statement(frame, line)
    for _ in range(MOST_STEPS):
        found = _one_of(statement, frame, identity, device)
        if statement is None or found is None:
            return
        name, value, owner = found
        if owner is not None:
            if (at := assigned_at(owner, name)) is not None:
                yield Site(*at, source=linecache.getline(*at).strip()[:MOST_SHOWN])
            return
        assigned = _assignment(frame, name, statement.lineno)
        if assigned is not None:
            statement, identity = assigned, 0
        elif own and name in _parameters(frame):
            frame, line = own.pop()
            statement, identity = _statement(frame, line), id(value)
        else:
            return
        if statement is not None:
            yield _site(frame, statement)


def _site(frame: FrameType, statement: ast.stmt) -> Site:
    code = frame.f_code
    text = linecache.getline(code.co_filename, statement.lineno).strip()[:MOST_SHOWN]
    return Site(code.co_filename, statement.lineno, function=function_name(code), source=text)


def _parameters(frame: FrameType) -> tuple[str, ...]:
    code = frame.f_code
    flags = bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + flags]


def _one_of(
    statement: ast.stmt | None, frame: FrameType, identity: int, device: str
) -> tuple[str, Any, Any] | None:
    """Name and value of the only variable of the statement on the device, with the object that
    it is an attribute of; the one with that identity, if it is there."""
    found: dict[str, tuple[str, Any, Any]] = {}
    own = variables(frame)
    for node in _read(statement) if statement else ():
        for name, value, owner in _known(node, own):
            if id(value) == identity:
                return name, value, owner
            if _lies_on(value, device):
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


def _known(node: ast.expr, own: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """What is known of it without running code of the program."""
    if isinstance(node, ast.Name) and node.id in own:
        yield node.id, own[node.id], None
    elif isinstance(node, ast.Attribute):
        for _, owner, _ in _known(node.value, own):
            try:
                kept = object.__getattribute__(owner, "__dict__")
            except AttributeError:
                continue
            module = isinstance(owner, torch.nn.Module)
            for held in (kept, *((owner._parameters, owner._buffers) if module else ())):
                if isinstance(held, Mapping) and node.attr in held:
                    yield node.attr, held[node.attr], owner


def _lies_on(value: Any, device: str) -> bool:
    if type(value) in PLAIN:
        return bool(value.dim()) and str(device_of(value)) == device
    if type(value) in (list, tuple, dict):
        inner = value.values() if isinstance(value, dict) else value
        return any(
            _lies_on(each, device)
            for each, _ in zip(inner, range(MOST_LOOKED_INTO), strict=False)
            if type(each) in PLAIN
        )
    return False


def _statement(frame: FrameType, line: int) -> ast.stmt | None:
    tree = _tree(frame.f_code.co_filename)
    return statement_at(tree, line) if tree else None


def _assignment(frame: FrameType, name: str, line: int) -> ast.stmt | None:
    """The last one above the line, in the same function."""
    tree = _tree(frame.f_code.co_filename)
    scope = _scope(tree, frame.f_code.co_firstlineno) if tree else None
    above = [
        node
        for node in _inside(scope or tree)
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor))
        and node.lineno < line
        and name in _targets(node)
    ]
    return max(above, key=lambda node: node.lineno, default=None)


def _targets(node: ast.Assign | ast.AnnAssign | ast.AugAssign | ast.For | ast.AsyncFor) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {
        each.id
        for target in targets
        for each in ast.walk(target)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }


def _scope(tree: ast.Module, first: int) -> ast.AST | None:
    """The function whose code begins at that line, its decorators included."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = [node.lineno, *(each.lineno for each in node.decorator_list)]
            if min(lines) == first:
                return node
    return None


def _inside(scope: ast.AST | None) -> Iterator[ast.AST]:
    """What runs in the frame of the scope itself."""
    for node in ast.iter_child_nodes(scope) if scope else ():
        yield node
        if not isinstance(node, SCOPES):
            yield from _inside(node)


@functools.lru_cache(maxsize=16)
def _tree(file: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return None
