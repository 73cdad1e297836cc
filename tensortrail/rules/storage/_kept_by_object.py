"""Losses that an object keeps with their graphs, in a list of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.objects import called, is_self
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import FunctionNode, Module

Loop = ast.For | ast.While | ast.AsyncFor
_SETS_UP = ("__init__", "__post_init__")
_EMPTIES = frozenset({"clear", "pop", "popleft", "zero_", "detach_"})


def training_step(module: Module, back: ast.Call) -> FunctionNode | None:
    """The method that goes back and steps an optimizer once, for a loop elsewhere."""
    function = module.function_of(back)
    if function is None or not isinstance(module.parent(function), ast.ClassDef):
        return None
    if any(isinstance(each, Loop) for each in module.ancestors(back)):
        return None
    steps = any(module.calls("step", inside=function))
    return function if steps else None


def is_of_one_step(module: Module, loop: Loop) -> bool:
    """`for _ in range(engine.gradient_accumulation_steps())`: the micro-batches of one step of
    DeepSpeed, which are few."""
    match loop:
        case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[most])):
            made = (behind(module, most), *stored_in(module, most))
            return any(
                isinstance(each, ast.Call) and called(each) == "gradient_accumulation_steps"
                for each in made
            )
    return False


def stored_in(module: Module, node: ast.expr) -> Iterator[ast.expr]:
    """What the class makes the attribute of `self` of."""
    if isinstance(node, ast.Attribute) and is_self(node.value):
        for member in module.members(node.attr, module.class_of(node)):
            stored = module.parent(member)
            if isinstance(member.ctx, ast.Store) and isinstance(stored, ast.Assign):
                yield stored.value


def kept_for_good(module: Module, function: FunctionNode, keeper: str) -> bool:
    """`self.losses`, which begins empty with the object and is never emptied again."""
    cls = module.class_of(function)
    if cls is None or not keeper.startswith("self.") or keeper.count(".") != 1:
        return False
    begun = False
    for node in module.nodes(ast.Attribute, cls):
        if module.text(node) != keeper:
            continue
        above = module.parent(node)
        if isinstance(node.ctx, ast.Store) and not isinstance(above, ast.AugAssign):
            around = module.function_of(node)
            if around is None or around.name not in _SETS_UP:
                return False
            begun = begun or (isinstance(above, (ast.Assign, ast.AnnAssign)) and _is_empty(above))
        elif isinstance(node.ctx, ast.Del) or _empties(module, node):
            return False
    return begun


def _is_empty(assign: ast.Assign | ast.AnnAssign) -> bool:
    value = assign.value
    match value:
        case ast.List(elts=[]) | ast.Constant(value=0):
            return True
        case ast.Call(func=ast.Name(id="list"), args=[]):
            return True
    return False


def _empties(module: Module, node: ast.Attribute) -> bool:
    above = module.parent(node)
    method = above.attr if isinstance(above, ast.Attribute) else ""
    return method in _EMPTIES or isinstance(above, (ast.Call, ast.Return, ast.Subscript))
