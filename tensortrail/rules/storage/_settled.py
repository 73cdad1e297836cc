"""Whether code has ruled out, before it compares pointers, that storages are missing."""

from __future__ import annotations

import ast

from tensortrail.rules import Module
from tensortrail.rules.shared.conditions import beside
from tensortrail.rules.shared.origins import text_behind
from tensortrail.rules.storage._pointers import ALSO_ASKED, is_plain

_SIZES = ("numel", "nbytes", "element_size", "storage_size", ".size()")
"""They tell an empty tensor, and not one on meta."""


def settled(
    module: Module, node: ast.expr, *tensors: ast.expr, meta_is_enough: bool = True
) -> bool:
    """Something else in the condition, or the code around, rules missing storages out."""
    if any(is_plain(module, each) for each in tensors):
        return True
    top: ast.AST = node
    asked = ""
    for up in module.ancestors(node):
        if isinstance(up, ast.Assert):
            return True
        if isinstance(up, ast.Call) and "assert" in module.text(up.func).lower():
            return True
        if not isinstance(up, (ast.BoolOp, ast.UnaryOp)):
            break
        if isinstance(up, ast.BoolOp):
            asked += "\n".join(module.text(each) for each in beside(up, top))
        top = up
    names = [module.text(each) for each in tensors]
    for guard in module.guards_of(node):
        test = module.once(text_behind, guard.test)
        asked += test + _words(module, guard.test) if any(n in test for n in names) else ""
    if "meta" in asked and meta_is_enough:
        return True
    sizes = _SIZES if "meta" not in asked and not meta_is_enough else ()
    return any(word in asked for word in ALSO_ASKED if word not in sizes)


def _words(module: Module, test: ast.expr) -> str:
    """Texts that names in the condition stand for."""
    names = (each for each in ast.walk(test) if isinstance(each, ast.Name))
    return " ".join(str(module.value_of(each).constant) for each in names)
