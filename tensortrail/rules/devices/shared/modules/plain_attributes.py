"""Tensors that a class keeps as plain attributes: where it stores and where it reads them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.places import Held, Where
from tensortrail.rules.set_by_name import read_by_name, set_by_name
from tensortrail.rules.view import FunctionNode, Module

_ON_THE_CPU = frozenset({Where.DEFAULT, Where.HOST})


def kept_on_cpu(module: Module, function: FunctionNode) -> Iterator[str]:
    """Names of the tensors on the CPU that the function stores in `self`."""
    for node, held in module.places(function).seen.items():
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            places = [place for each in _with_members(held) for place in each.places]
            yield from {node.attr for each in places if each.where in _ON_THE_CPU}
    for name, value in _stored_by_name(module, function):
        kept = module.places(function).seen.get(value)
        members = _with_members(kept) if kept is not None else ()
        if any(place.where in _ON_THE_CPU for each in members for place in each.places):
            yield name


def _stored_by_name(module: Module, inside: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    calls = module.calls("setattr", "__setattr__", inside=inside)
    for node in (*calls, *module.nodes(ast.Assign, inside)):
        found = set_by_name(node)
        if found is not None:
            yield found


def _with_members(held: Held) -> Iterator[Held]:
    yield held
    yield from held.parts or ()
    if held.each is not None:
        yield held.each


def read_of_self(module: Module, function: FunctionNode) -> set[str]:
    by_name = {read_by_name(each) for each in module.calls("getattr", inside=function)}
    found = {node.attr for node in module.nodes(ast.Attribute, function)}
    return found | {each for each in by_name if each is not None}


def stores(module: Module, function: FunctionNode, name: str) -> list[ast.Attribute]:
    """Where the class around the function assigns the attribute."""
    cls = module.class_of(function)
    everywhere = module.nodes(ast.Attribute, cls) if cls is not None else ()
    return [each for each in everywhere if each.attr == name and isinstance(each.ctx, ast.Store)]


def kept_at(module: Module, function: FunctionNode, name: str) -> ast.AST | None:
    cls = module.class_of(function)
    by_name = _stored_by_name(module, cls) if cls is not None else ()
    named = [value for each, value in by_name if each == name]
    found = [*stores(module, function, name), *named]
    return module.statement_of(found[0]) if found else None
