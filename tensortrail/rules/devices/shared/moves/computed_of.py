"""What a tensor is computed of, and whether some of it lies where the tensor is moved to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

from tensortrail.rules.shared.factories import is_factory
from tensortrail.rules.shared.given_devices import said_device
from tensortrail.rules.shared.moves import CASTS, told_of
from tensortrail.rules.shared.objects import called, given, is_self, keyword, receiver
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import Module
from tensortrail.rules.words import Kind

_DEPTH = 6
"""Names and attributes that are followed."""
_NO_TENSORS = frozenset(
    "shape dtype device ndim config size dim numel item tolist numpy cpu len range".split()
)
"""Attributes, methods and functions whose result is nowhere, or on the CPU."""


def is_made_there(module: Module, leaf: ast.expr, move: ast.Call) -> bool:
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


def is_computed_there(module: Module, moved: ast.expr, move: ast.Call) -> bool:
    """Something that the tensor is computed of was put on that device, or may decide it: what the
    device is asked of, and what a function of the project or `zeros_like` gives."""
    device, parts = told_of(move), list(computed_of(module, moved))
    calls = [each for each in parts if isinstance(each, ast.Call)]
    if device is None:
        return any(called(each) == called(move) for each in calls)
    asked = behind(module, device)
    if any(_is_put_on(module, each, device) or _is_made_like(module, each) for each in calls):
        return True
    if not _is_of_tensor(asked):
        return False
    return any(module.text(each) == module.text(asked.value) for each in parts) or any(
        module.is_of_project(each) or _is_of_tensor(said_device(module, each)) for each in calls
    )


def is_made_beside(module: Module, move: ast.Call) -> bool:
    """The device is that of `self.linear.weight`, of a layer that the function makes too."""
    owner = told_of(move)
    while isinstance(owner, ast.Attribute) and isinstance(owner.value, ast.Attribute):
        owner = owner.value
    function = module.function_of(move)
    if not isinstance(owner, ast.Attribute) or function is None:
        return False
    stored = any(
        isinstance(each.ctx, ast.Store) and module.text(each) == module.text(owner)
        for each in module.nodes(ast.Attribute, function)
    )
    return stored and module.value_of(owner).is_only(Kind.MODULE)


def _is_of_tensor(device: ast.expr | None) -> TypeGuard[ast.Attribute]:
    """`x.device`."""
    return isinstance(device, ast.Attribute) and device.attr == "device"


def _is_put_on(module: Module, call: ast.Call, device: ast.expr) -> bool:
    """On that device, and not on what had its name before."""
    said = said_device(module, call)
    return said is not None and _value(module, said) == _value(module, device)


def _value(module: Module, device: ast.expr) -> tuple[str, tuple[ast.expr, ...]]:
    """What the device is, and what that was: a name may stand for one device after the other."""
    origins = module.value_of(device).origins
    found = origins[0] if len(origins) == 1 else device
    return module.text(found), module.value_of(found).origins


def _is_made_like(module: Module, call: ast.Call) -> bool:
    """`zeros_like(x)` lies where `x` does, which may be anywhere."""
    is_like = module.qualified(call.func).endswith("_like")
    return is_like and keyword(call, "device") is None


def computed_of(module: Module, node: ast.expr, depth: int = _DEPTH) -> Iterator[ast.expr]:
    """The expression, and all that its values come from: through names, operations and calls, but
    not through shapes, devices and factories, which make a tensor of no other one."""
    yield node
    for each in _parts(module, node):
        yield from computed_of(module, each, depth)
    if depth and isinstance(node, (ast.Name, ast.Attribute)):
        for each in module.value_of(node).origins:
            if each is not node:
                yield from computed_of(module, each, depth - 1)


def _parts(module: Module, node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Call():
            if called(node) not in _NO_TENSORS and not is_factory(module, node):
                owner = receiver(node)
                yield from (each for each in (owner, *given(node)) if each is not None)
        case ast.Attribute():
            if node.attr not in _NO_TENSORS and not is_self(node.value):
                yield node.value
        case ast.Subscript() | ast.Starred():
            yield node.value
        case ast.ListComp() | ast.GeneratorExp():
            yield node.elt
        case _:
            yield from (each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr))
