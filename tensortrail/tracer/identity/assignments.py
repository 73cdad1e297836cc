"""The source of a running function tells where its variables are assigned."""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterator
from types import FrameType, FunctionType

from tensortrail.rules.shared.mends import statement_at

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
Assigning = ast.Assign | ast.AnnAssign | ast.AugAssign | ast.For | ast.AsyncFor


def parameters(frame: FrameType) -> tuple[str, ...]:
    code = frame.f_code
    flags = bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + flags]


def statement_of(frame: FrameType, line: int) -> ast.stmt | None:
    tree = tree_of(frame.f_code.co_filename)
    return statement_at(tree, line) if tree else None


def assignment(frame: FrameType, name: str, line: int) -> ast.stmt | None:
    """The last one above the line, in the same function."""
    tree = tree_of(frame.f_code.co_filename)
    scope = _scope(tree, frame.f_code.co_firstlineno) if tree else None
    above = [
        node
        for node in _inside(scope or tree)
        if isinstance(node, Assigning) and node.lineno < line and name in _targets(node)
    ]
    return max(above, key=lambda node: node.lineno, default=None)


def default_at(frame: FrameType, name: str, value: object) -> int | None:
    """The line of the default of a parameter, if that is its value: nobody passed another one."""
    tree = tree_of(frame.f_code.co_filename)
    scope = _scope(tree, frame.f_code.co_firstlineno) if tree else None
    function = _function(frame)
    if function is None or not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    given = scope.args
    positional = [each.arg for each in (*given.posonlyargs, *given.args)]
    values = function.__defaults__ or ()
    named = dict(zip(positional[len(positional) - len(values) :], values, strict=False))
    nodes = dict(zip(positional[len(positional) - len(values) :], given.defaults, strict=False))
    for argument, node in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        if node is not None:
            nodes[argument.arg] = node
    default = {**named, **(function.__kwdefaults__ or {})}.get(name)
    return nodes[name].lineno if default is value is not None and name in nodes else None


def _function(frame: FrameType) -> FunctionType | None:
    """The function whose code runs, if the file or the class of its object still has it."""
    code = frame.f_code
    own = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    kept = getattr(type(own), code.co_name, None) if own is not None else None
    for found in (frame.f_globals.get(code.co_name), kept):
        if isinstance(found, FunctionType) and found.__code__ is code:
            return found
    return None


def filled_at(file: str, line: int, name: str) -> int:
    """The first line of the class that puts something into the list or dict which the line made
    empty: `self.kept[key] = ...`, `self.kept.append(...)`. The line itself if it is not empty."""
    tree = tree_of(file)
    statement = statement_at(tree, line) if tree else None
    if tree is None or not _makes_empty(statement):
        return line
    around = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
              and node.lineno <= line <= (node.end_lineno or 0)]  # fmt: skip
    inner = max(around, key=lambda node: node.lineno, default=None)
    fills = [line_of for node in ast.walk(inner or tree) if (line_of := _filled(node, name))]
    return min(fills, default=line)


def _makes_empty(statement: ast.stmt | None) -> bool:
    match statement:
        case ast.Assign(value=ast.Dict(keys=[]) | ast.List(elts=[])):
            return True
        case ast.Assign(value=ast.Call(func=ast.Name(id="dict" | "list"), args=[], keywords=[])):
            return True
    return False


def _filled(node: ast.AST, name: str) -> int:
    """The line, if it puts something into it; else 0."""
    match node:
        case ast.Assign(targets=[ast.Subscript(value=ast.Attribute(attr=kept))]):
            return node.lineno if kept == name else 0
        case ast.Call(func=ast.Attribute(attr="append", value=ast.Attribute(attr=kept))):
            return node.lineno if kept == name else 0
    return 0


def _targets(node: Assigning) -> set[str]:
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
def tree_of(file: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return None
