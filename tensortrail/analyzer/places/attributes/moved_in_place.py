"""What a plain object keeps and moves by a statement of its own: `self.model.to(device)`."""

from __future__ import annotations

import ast
from typing import Protocol

from tensortrail.analyzer.places.held.operations import follows_a_device
from tensortrail.analyzer.syntax.tree import Tree
from tensortrail.rules.places import FunctionPlaces, Held
from tensortrail.rules.shared.moves import MOVES
from tensortrail.rules.text_of import text_of
from tensortrail.rules.view import FunctionNode


class _File(Protocol):
    tree: Tree

    def places(self, function: FunctionNode) -> FunctionPlaces: ...


def moved_in_place(file: _File, cls: ast.ClassDef, name: str) -> Held | None:
    """The moved model, if the class calls it and moves it nowhere else: only a module moves so."""
    own = f"self.{name}"
    called = [each.func for each in file.tree.nodes(ast.Call, cls)]
    moves = [
        each
        for each in called
        if isinstance(each, ast.Attribute) and each.attr in MOVES and text_of(each.value) == own
    ]
    if len(moves) != 1 or not any(text_of(each) == own for each in called):
        return None
    call = file.tree.parent(moves[0])
    function = file.tree.outermost_function_of(moves[0])
    if not isinstance(call, ast.Call) or not isinstance(file.tree.parent(call), ast.Expr):
        return None
    held = file.places(function).seen.get(call) if function is not None else None
    is_there = held is not None and held.moved is not None and follows_a_device(held)
    return held if is_there else None
