"""Members of one object, of which some are brought to the CPU before NumPy reads them."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.objects import called, receiver
from tensortrail.rules.shared.tensor_methods import REDUCING, SAME_DEVICE
from tensortrail.rules.text_of import text_of
from tensortrail.rules.view import Module


def brought_beside(module: Module, tensor: ast.expr) -> list[str]:
    """`state.cell` of `state.cell.detach().cpu().numpy()`, and others of the object whose
    `state.numbers` is read as it is, in the same function."""
    own, function = _member(tensor), module.function_of(tensor)
    if own is None or function is None:
        return []
    found: dict[str, None] = {}
    for call in module.calls("cpu", inside=function):
        brought = receiver(call)
        other = _member(brought) if brought is not None else None
        if other is not None and text_of(other.value) == text_of(own.value):
            found.setdefault(text_of(other))
    return [] if text_of(own) in found else list(found)


def _member(node: ast.expr) -> ast.Attribute | ast.Subscript | None:
    """`state.cell` of `state.cell.detach().float()`, `batch["ids"]` of `batch["ids"][0]`."""
    while isinstance(node, ast.Call) and called(node) in SAME_DEVICE | REDUCING:
        if not isinstance(node.func, ast.Attribute):
            return None
        node = node.func.value
    if isinstance(node, ast.Subscript) and isinstance(node.value, (ast.Attribute, ast.Subscript)):
        node = node.value
    if isinstance(node, ast.Subscript):
        return node if isinstance(node.slice, ast.Constant) else None
    return node if isinstance(node, ast.Attribute) else None
