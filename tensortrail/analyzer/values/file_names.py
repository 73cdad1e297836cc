"""How a path that code puts together ends, as far as that is written out."""

from __future__ import annotations

import ast

from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.patterns import pattern

_DEEPEST = 6
_AS_IT_IS = frozenset("Path PurePath str open fspath abspath expanduser as_posix absolute".split())
"""Calls whose result names the same file as what they are given, or are asked of."""
_OF_PARTS = frozenset({"join", "joinpath"})
_PLACEHOLDER = pattern(r"\{[^{}]*\}|%[-+#0-9.]*[a-zA-Z]")
_LETTERS = 4
"""That an end must have before its extension to say which file it is."""


def end_of_path(file: ProjectFile, path: ast.expr) -> str:
    """`_state.pt` of `f"{folder}/{name}_state.pt"`; "" where only an extension is written out, or
    nothing."""
    end = _end(file, path, _DEEPEST).rpartition("/")[2]
    stem = end.rpartition(".")[0] or end
    return end if sum(map(str.isalpha, stem)) >= _LETTERS else ""


def _end(file: ProjectFile, path: ast.expr, depth: int) -> str:
    match path:
        case _ if not depth:
            return ""
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=[*_, ast.Constant(value=str() as text)]):
            return text
        case ast.JoinedStr(values=[*_, ast.FormattedValue(value=last)]):
            return _end(file, last, depth - 1)
        case ast.BinOp(left=ast.Constant(value=str() as text), op=ast.Mod()):
            return _after_placeholders(text)
        case ast.BinOp(op=ast.Add() | ast.Div(), right=right):
            return _end(file, right, depth - 1)
        case ast.Call():
            return _of_call(file, path, depth - 1)
    return _of_name(file, path, depth - 1)


def _of_call(file: ProjectFile, call: ast.Call, depth: int) -> str:
    name = file.qualified(call.func).rpartition(".")[2]
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if isinstance(owner, ast.Constant) and isinstance(owner.value, str):
        return _after_placeholders(owner.value) if _is_format(call) else ""
    if _is_named(call, name, _OF_PARTS) and call.args:
        return _end(file, call.args[-1], depth)
    if _is_named(call, name, _AS_IT_IS):
        inner = call.args[0] if call.args else owner
        return _end(file, inner, depth) if inner is not None else ""
    return ""


def _is_named(call: ast.Call, name: str, names: frozenset[str]) -> bool:
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return name in names or method in names


def _is_format(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "format"


def _after_placeholders(text: str) -> str:
    return _PLACEHOLDER.split(text)[-1]


def _of_name(file: ProjectFile, node: ast.expr, depth: int) -> str:
    value = file.value_of(node)
    if isinstance(value.constant, str):
        return value.constant
    if len(value.origins) == 1 and value.origins[0] is not node:
        return _end(file, value.origins[0], depth)
    if isinstance(node, ast.Attribute) and node.attr.isupper():
        return node.attr  # a constant of the class or of another file, by its name
    return ""
