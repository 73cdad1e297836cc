"""Attributes that methods use as they are, beyond asking for their form."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tensortrail.rules.devices._device_aware import prepares
from tensortrail.rules.view import FunctionNode, Module

_ASKED = frozenset({"device", "shape", "dtype", "size", "item"})


def is_used(module: Module, cls: ast.ClassDef, name: str, stores: Sequence[ast.Attribute]) -> bool:
    """A method other than the one that makes it reads more of it than its form."""
    makers = {module.function_of(each) for each in stores}
    return any(
        isinstance(node.ctx, ast.Load)
        and _outside(module, module.function_of(node), makers)
        and not _asks_for_form(module, node)
        and not is_an_index(module, node)
        and not _is_taken_apart(module, node)
        for node in module.members(name, cls)
    )


def _outside(
    module: Module, function: FunctionNode | None, makers: set[FunctionNode | None]
) -> bool:
    """Another method, that works where the module is."""
    if function is None or function in makers or function.name == "extra_repr":
        return False
    return not prepares(module, function)


def _is_taken_apart(module: Module, node: ast.Attribute) -> bool:
    """`for each in self.steps`: what it gives has no dimension; or it is compared with None, or
    says how often an index is drawn."""
    above = module.parent(node)
    if isinstance(above, ast.Call):
        return module.text(above.func) == "torch.multinomial"
    looped = isinstance(above, (ast.For, ast.comprehension)) and above.iter is node
    return looped or isinstance(above, ast.Compare)


def is_an_index(module: Module, node: ast.AST) -> bool:
    """`x[:, self.ids]`: an index may lie on the CPU."""
    index: ast.AST = node
    above = module.parent(index)
    if isinstance(above, ast.Tuple):
        index, above = above, module.parent(above)
    return isinstance(above, ast.Subscript) and above.slice is index


def _asks_for_form(module: Module, node: ast.Attribute) -> bool:
    above = module.parent(node)
    return isinstance(above, ast.Attribute) and above.attr in _ASKED
