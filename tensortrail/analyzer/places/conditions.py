"""What a condition says of the places of tensors."""

from __future__ import annotations

import ast
from dataclasses import replace

from tensortrail.analyzer.places.functions.annotated import names_other_classes
from tensortrail.analyzer.places.functions.world import World
from tensortrail.analyzer.places.held.environment import Environment
from tensortrail.patterns import pattern
from tensortrail.rules.places import NUMBER, Held, What, opposite
from tensortrail.rules.text_of import text_of

_ABOUT_DEVICES = pattern(r"device|cuda|offload|is_meta|(?<![a-z])(cpu|gpu|mps|xpu|npu)(?![a-z])")


def condition_of(test: ast.expr) -> str:
    """The condition as text, in one form for all spellings of it."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return opposite(condition_of(test.operand))
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        left, right = text_of(test.left), text_of(test.comparators[0])
        turned = {ast.IsNot: "is", ast.NotEq: "==", ast.NotIn: "in"}.get(type(test.ops[0]))
        if turned is not None:
            return f"not {left} {turned} {right}"
    return text_of(test)


def is_about_devices(test: ast.expr) -> bool:
    """The branches know more of places than can be told."""
    return bool(_ABOUT_DEVICES.search(text_of(test)))


def narrow(test: ast.expr, holds: bool, env: Environment, world: World) -> None:
    """Learn from a condition: what is None, what is a tensor, what is a number."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        narrow(test.operand, not holds, env, world)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) == holds:
        for part in test.values:
            narrow(part, holds, env, world)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        _narrow_none(test, holds, env)
    elif isinstance(test, ast.Call) and test.args:
        _narrow_instance(test, holds, env, world)


def _narrow_none(test: ast.Compare, holds: bool, env: Environment) -> None:
    right = test.comparators[0]
    name = _path(test.left)
    is_none = isinstance(test.ops[0], (ast.Is, ast.Eq)) == holds
    if is_none and name and isinstance(right, ast.Constant) and right.value is None:
        env.values[name] = Held(What.NONE)


def _narrow_instance(test: ast.Call, holds: bool, env: Environment, world: World) -> None:
    called = text_of(test.func)
    name = _path(test.args[0])
    held = env.values.get(name)
    if called not in ("isinstance", "torch.is_tensor") or held is None:
        return
    if held.what in (What.SELF, What.MODULE, What.OBJECT):
        return
    of_tensor = called == "torch.is_tensor" or _names_tensor(test.args[-1], world)
    only_tensor = called == "torch.is_tensor" or not isinstance(test.args[-1], ast.Tuple)
    if of_tensor and holds and held.what is What.UNKNOWN:
        env.values[name] = replace(held, what=What.TENSOR) if only_tensor else held
    elif of_tensor is not holds:
        env.values[name] = NUMBER


def _names_tensor(classes: ast.expr, world: World) -> bool:
    named = "Tensor" in text_of(classes) or "Parameter" in text_of(classes)
    return named and not names_other_classes(classes, world)


def _path(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return ""
