"""Tensors that are to get gradients, and moves that make others of them, which are no leaves."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.layers import PARAMETER
from tensortrail.rules.shared.moves import CASTS, TO_DEVICE
from tensortrail.rules.shared.objects import called, is_false, is_self, is_true, keyword, receiver
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import Module

_MOVES = TO_DEVICE | CASTS
_DEPTH = 3


def lost_leaf(module: Module, node: ast.expr, depth: int = _DEPTH) -> ast.Call | None:
    """The move that made this tensor of a leaf, if one of those that it may come from did."""
    for source in _sources(module, node):
        if isinstance(source, (ast.List, ast.Tuple)):
            parts = source.elts
        elif isinstance(source, (ast.ListComp, ast.GeneratorExp)):
            parts = [source.elt]
        else:
            parts = [source]
        for part in parts:
            move = _moved_leaf(module, part)
            if move is None and depth and part is not source:
                move = lost_leaf(module, part, depth - 1)
            if move is not None:
                return move
    return None


def _sources(module: Module, node: ast.expr) -> tuple[ast.expr, ...]:
    if isinstance(node, (ast.Name, ast.Attribute)):
        return module.value_of(node).origins
    return (node,)


def _moved_leaf(module: Module, node: ast.expr) -> ast.Call | None:
    """`torch.ones(2, requires_grad=True).to(device)`, or `x.to(device)` of such an `x`."""
    if not isinstance(node, ast.Call) or called(node) not in _MOVES:
        return None
    owner = receiver(node)
    if owner is None or (called(node) == "to" and not (node.args or node.keywords)):
        return None
    leaves = [each for each in _sources(module, owner) if is_leaf(module, each)]
    moved = leaves and not any(is_there(module, each, node) for each in leaves)
    return node if moved else None


def is_made_a_leaf(module: Module, tensor: ast.expr, move: ast.Call) -> bool:
    """Under `no_grad` a move gives a tensor without a past: `x.requires_grad = True` is enough."""
    around = " ".join(module.text(each) for each in module.contexts_of(move))
    if "no_grad" not in around:
        return False
    asked = f"{module.text(tensor)}.requires_grad"
    return any(
        module.text(each.targets[0]) == asked and is_true(each.value)
        for each in module.nodes(ast.Assign)
    )


def is_leaf(module: Module, node: ast.expr) -> bool:
    """Made to get a gradient: `requires_grad=True`, `nn.Parameter(...)`, `.requires_grad_()`."""
    if not isinstance(node, ast.Call):
        return False
    name = module.qualified(node.func)
    if is_parameter(module, node):
        return not is_false(module.argument(node, 1, "requires_grad"))
    if name.startswith("torch.") and is_true(keyword(node, "requires_grad")):
        return True
    given = module.argument(node, 0, "requires_grad")
    return called(node) == "requires_grad_" and not is_false(given) and _is_fresh(module, node)


def is_parameter(module: Module, node: ast.expr) -> bool:
    name = module.qualified(node.func) if isinstance(node, ast.Call) else ""
    return name == PARAMETER


def _is_fresh(module: Module, call: ast.Call) -> bool:
    """`torch.rand(2).requires_grad_()`, `x.detach().clone().requires_grad_()`."""
    owner = receiver(call)
    while isinstance(owner, ast.Call):
        if called(owner) == "detach" or module.qualified(owner.func).startswith("torch."):
            return True
        owner = receiver(owner)
    return False


def is_there(module: Module, leaf: ast.expr, move: ast.Call) -> bool:
    """What it is made of was made, or moved, there or to that dtype: the move changes nothing."""
    parts = [each for made in _made_of(module, leaf) for each in ast.walk(made)]
    calls = [each for each in parts if isinstance(each, ast.Call)]
    made = [
        each.value for call in calls for each in call.keywords if each.arg in ("device", "dtype")
    ]
    made += [each for call in calls if called(call) == "to" for each in call.args]
    texts = {module.text(behind(module, each)) for each in made}
    asked = [*move.args, *(each.value for each in move.keywords if each.arg in ("device", "dtype"))]
    if called(move) in CASTS:
        return f"torch.{called(move)}" in texts
    if not asked:
        kind = called(move)
        return any(kind in text for text in texts) or kind in map(called, set(calls) - {move})
    return all(
        module.text(behind(module, each)) in texts or _is_default(module, each) for each in asked
    )


def _made_of(module: Module, leaf: ast.expr) -> Iterator[ast.expr]:
    """The expression, and what the attributes of `self` in it were assigned from."""
    yield leaf
    for each in ast.walk(leaf):
        if isinstance(each, ast.Attribute) and is_self(each.value):
            yield from module.value_of(each).origins


def _is_default(module: Module, node: ast.expr) -> bool:
    """`torch.float32`, which a factory makes if it is not told, and what is no place at all."""
    said = behind(module, node)
    return module.qualified(said) in ("torch.float32", "torch.float") or (
        isinstance(said, ast.Constant) and said.value in ("cpu", None, True, False)
    )


def gradients_wanted(module: Module) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Expressions that must be leaves, with what asks for it: `x.grad`, an optimizer."""
    for node in module.nodes(ast.Attribute):
        if node.attr == "grad" and isinstance(node.ctx, ast.Load):
            yield node.value, node
    for call in module.nodes(ast.Call):
        if not is_optimizer(module, call):
            continue
        given = module.argument(call, 0, "params")
        for each in () if given is None else _listed(given):
            yield each, call


def is_optimizer(module: Module, call: ast.Call) -> bool:
    owner, _, last = module.qualified(call.func).rpartition(".")
    return owner in ("torch.optim", "torch.optim.adamw") and last[:1].isupper()


def _listed(node: ast.expr) -> Iterator[ast.expr]:
    """The tensors of `[x, y]`, `[{"params": [x]}]`, `x`."""
    if isinstance(node, (ast.List, ast.Tuple)):
        for each in node.elts:
            yield from _listed(each)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "params":
                yield from _listed(value)
    elif isinstance(node, ast.Starred):
        yield from _listed(node.value)
    else:
        yield node
