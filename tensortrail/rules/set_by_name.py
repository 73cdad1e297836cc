"""Attributes of `self` that are set and read by name: `setattr(self, "table", ...)`,
`self.__dict__["table"] = ...`, `getattr(self, f"table_{i}")`."""

from __future__ import annotations

import ast
import re


def set_by_name(node: ast.AST) -> tuple[str, ast.expr] | None:
    """The name and the value, if the node is such a call or such an assignment."""
    match node:
        case ast.Call(func=ast.Name(id="setattr"), args=[owner, name, value]) if _is_self(owner):
            return _both(name, value)
        case ast.Call(func=ast.Attribute(attr="__setattr__"), args=[*owner, name, value]):
            return _both(name, value) if not owner or _is_self(owner[0]) else None
        case ast.Assign(targets=[ast.Subscript(value=where, slice=name)], value=value):
            return _both(name, value) if _is_dict_of_self(where) else None
    return None


def read_by_name(node: ast.Call) -> str | None:
    """`table` of `getattr(self, "table")`."""
    match node:
        case ast.Call(func=ast.Name(id="getattr"), args=[owner, name]) if _is_self(owner):
            return name_written(name)
    return None


def name_written(node: ast.expr) -> str | None:
    """`table` of `"table"`, `table_{}` of `f"table_{i}"` and of `"table_" + str(i)`, `{name}` of
    the variable `name`, which no attribute is called."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=text):
            return f"{{{text}}}"
        case ast.JoinedStr(values=parts):
            return "".join(map(_piece, parts))
        case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Add()):
            return f"{text}{{}}"
        case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mod()):
            return re.sub(r"%[a-z]", "{}", text)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
            return re.sub(r"\{[^}]*\}", "{}", text)
    return None


def _piece(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else "{}"


def is_one_of_many(name: str) -> bool:
    """Several attributes are meant by it."""
    return "{" in name


def _both(name: ast.expr, value: ast.expr) -> tuple[str, ast.expr] | None:
    written = name_written(name)
    return (written, value) if written is not None else None


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _is_dict_of_self(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(value=owner, attr="__dict__"):
            return _is_self(owner)
        case ast.Call(func=ast.Name(id="vars"), args=[owner]):
            return _is_self(owner)
    return False
