"""Where a tensor would be that is put on what a device expression says."""

from __future__ import annotations

import ast
from collections.abc import Callable

from tensortrail.rules.places import Held, Place, What, Where

Places = frozenset[Place]
Evaluate = Callable[[ast.expr], Held]


def places_on(node: ast.expr, by: ast.AST, evaluate: Evaluate, dotted: str = "") -> Places:
    """`dotted` is the qualified name of what is called, if the expression is a call."""
    if isinstance(node, ast.Constant):
        return frozenset({_of_constant(node.value, by)})
    if isinstance(node, ast.Call) and dotted == "torch.device":
        named = [each.value for each in node.keywords if each.arg in ("type", "device")]
        given = [*node.args[:1], *named]
        return places_on(given[0], by, evaluate) if given else frozenset()
    held = evaluate(node)
    if held.what is What.DEVICE and held.places:
        return held.places
    if isinstance(node, ast.IfExp):
        return frozenset()
    return frozenset({Place(Where.DEVICE, ast.unparse(node), by)})


def _of_constant(value: object, by: ast.AST) -> Place:
    if value is None:
        return Place(Where.DEFAULT, by=by)
    if isinstance(value, int):
        return Place(Where.LITERAL, "cuda", by)
    name = str(value).partition(":")[0]
    return Place(Where.META, by=by) if name == "meta" else Place(Where.LITERAL, name, by)
