"""Where a tensor would be that is put on what a device expression says."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from tensortrail.analyzer.syntax.tree import Tree
from tensortrail.rules.places import Held, Place, What, Where
from tensortrail.rules.text_of import text_of

_DEVICE = re.compile(r"(cpu|cuda|mps|xpu|npu|hpu|meta)(:\d+)?")
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
    return frozenset({Place(Where.DEVICE, text_of(node), by)})


def _of_constant(value: object, by: ast.AST) -> Place:
    if value is None:
        return Place(Where.DEFAULT, by=by)
    if isinstance(value, int):
        return Place(Where.LITERAL, "cuda", by)
    name = str(value).partition(":")[0]
    return Place(Where.META, by=by) if name == "meta" else Place(Where.LITERAL, name, by)


def used_as_devices(tree: Tree, root: ast.AST) -> frozenset[str]:
    """Variables that the file passes as `device=`, or binds to the name of a device."""
    given = {
        each.value.id
        for each in tree.nodes(ast.keyword, root)
        if each.arg == "device" and isinstance(each.value, ast.Name)
    }
    bound = {
        target.id
        for each in tree.nodes(ast.Assign, root)
        if _is_device(each.value)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    return frozenset(given | bound)


def _is_device(made: ast.expr) -> bool:
    """`"cuda"`, `torch.device("cuda")`, `"cuda" if torch.cuda.is_available() else "cpu"`"""
    match made:
        case ast.Constant(value=str(text)):
            return _DEVICE.fullmatch(text) is not None
        case ast.IfExp(body=body, orelse=other):
            return _is_device(body) and _is_device(other)
        case ast.Call(func=ast.Attribute(attr="device") | ast.Name(id="device"), args=[_, *_]):
            return True
    return False
