"""What a comparison compares: what may be a device, and the names of devices."""

from __future__ import annotations

import ast

from tensortrail.rules import Kind, Module
from tensortrail.rules.devices.shared.named.device_names_held import may_hold_a_name, names_a_device
from tensortrail.rules.devices.shared.named.device_values import is_device

_SAID = (
    ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.IfExp, ast.BoolOp,
    ast.NamedExpr, ast.Await,
)  # fmt: skip
"""What may say a device, or the name of one."""
_OTHER_ATTRIBUTES = frozenset({"shape", "dtype", "ndim", "requires_grad", "__class__"})
_OTHER_CALLS = frozenset("len set list tuple sorted id type int float sum max min abs".split())
DISPLAYS = (ast.List, ast.Tuple, ast.Set)
_BINDING = (
    ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.For, ast.AsyncFor, ast.comprehension, ast.Tuple,
    ast.List,
)  # fmt: skip
"""Where a list gets a name, or each of its parts does."""


def may_say_a_device(node: ast.expr) -> bool:
    """Or name one. Of anything else there is nothing to say, whoever is compared with it."""
    if isinstance(node, ast.Constant):
        return names_a_device(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr not in _OTHER_ATTRIBUTES
    if isinstance(node, ast.Call):
        return getattr(node.func, "id", "") not in _OTHER_CALLS
    return isinstance(node, _SAID)


def links(module: Module, compare: ast.Compare) -> list[tuple[ast.expr, ast.cmpop, ast.expr]]:
    """`a == b` and `b == "cuda"` of `a == b == "cuda"`. Who is equal to all of them is asked of
    the first one that is known to be a device."""
    operands = [compare.left, *compare.comparators]
    found = list(zip(operands, compare.ops, operands[1:], strict=False))
    if len(found) == 1 or not all(isinstance(each, ast.Eq) for each in compare.ops):
        return found
    names = [each for each in operands if is_a_name(module, each)]
    devices = [each for each in operands if is_device(module, each)]
    return [(devices[0], compare.ops[0], names[0])] if names and devices else []


def is_a_name(module: Module, node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return names_a_device(node.value)
    if not may_hold_a_name(module, node):
        return False
    value = module.value_of(node)
    return names_a_device(value.constant) and not value.may_be(Kind.DEVICE)


def listed_names(module: Module, node: ast.expr) -> list[ast.expr]:
    """The elements of a list, tuple or set, or of the one that a name stands for."""
    if isinstance(node, ast.Name):
        origins = module.value_of(node).origins
        node = origins[0] if len(origins) == 1 else node
    return node.elts if isinstance(node, DISPLAYS) else []


def binds_lists(module: Module) -> bool:
    """The file has a list of what may be devices that a name may stand for."""
    displays: list[ast.List | ast.Tuple | ast.Set] = [*module.nodes(ast.Set)]
    displays += [*module.nodes(ast.List), *module.nodes(ast.Tuple)]
    return any(
        each.elts
        and isinstance(module.parent(each), _BINDING)
        and not isinstance(getattr(each, "ctx", None), ast.Store)
        and all(map(may_say_a_device, each.elts))
        for each in displays
    )


def names_in_pattern(module: Module, pattern: ast.pattern) -> list[ast.expr]:
    """The device names that a pattern compares the subject with."""
    if isinstance(pattern, ast.MatchOr):
        return [name for each in pattern.patterns for name in names_in_pattern(module, each)]
    named = isinstance(pattern, ast.MatchValue) and is_a_name(module, pattern.value)
    return [pattern.value] if isinstance(pattern, ast.MatchValue) and named else []
