"""Losses that are made without a graph and differentiated a few lines later, told from code."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.objects import called, is_before, keyword, names_in, receiver
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import Module

_COPY = ("torch.tensor", "torch.Tensor", "torch.FloatTensor", "torch.as_tensor")
_WITHOUT = ("detach", "item", "tolist", "numpy")


def losses_cut(module: Module) -> Iterator[tuple[ast.Call, ast.expr]]:
    """`backward()`, and what cut the graph of its loss: `torch.tensor(losses)` or `.detach()`."""
    for backward in module.calls("backward"):
        loss = receiver(backward)
        if not isinstance(loss, ast.Name) or _made_to_require(module, loss, backward):
            continue
        origins = module.value_of(loss).origins
        if len(origins) == 1 and (cut := _cut(module, origins[0])) is not None:
            yield backward, cut


def _cut(module: Module, made: ast.expr) -> ast.expr | None:
    """Of `torch.tensor(losses).mean()` and of `f(x).detach()`; not of a sum with other terms."""
    node = made
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if called(node) == "requires_grad_":
            return None
        if module.qualified(node.func) in _COPY:
            return node if _copies_tensors(module, node) else None
        if called(node) in _WITHOUT and not node.args and "." not in module.qualified(node.func):
            return node
        node = behind(module, node.func.value)
    return None


def _copies_tensors(module: Module, call: ast.Call) -> bool:
    """It is given a list that a comprehension or a loop fills, or that names tensors."""
    if keyword(call, "requires_grad") is not None or not call.args:
        return False
    given = behind(module, call.args[0])
    if isinstance(given, (ast.ListComp, ast.GeneratorExp)):
        return any(isinstance(each, ast.Call) for each in ast.walk(given.elt))
    if isinstance(given, ast.List) and given.elts:
        return all(module.value_of(each).is_tensor for each in given.elts)
    return module.value_of(call.args[0]).is_tensor


def _made_to_require(module: Module, loss: ast.Name, backward: ast.Call) -> bool:
    """`loss.requires_grad = True` between: no error, and nobody learns from it."""
    return any(
        loss.id in names_in(each.value) and is_before(each, backward)
        for name in ("requires_grad", "requires_grad_")
        for each in module.members(name, module.function_of(backward))
    )
