"""Which variables of a file may hold the name of a device, as far as can be told without following
any values."""

from __future__ import annotations

import ast
import re

from tensortrail.rules.shared.functions import outermost_function, parameter_names
from tensortrail.rules.shared.objects import last_name
from tensortrail.rules.view import Module

_DEVICE = re.compile(r"(cpu|cuda|meta|mps|xpu|npu|hpu|xla|mlu|musa)(:\d+)?")
_DISPLAYS = (ast.List, ast.Tuple, ast.Set)
_USING = (
    ast.Compare, ast.Call, ast.keyword, ast.arguments, ast.MatchValue, ast.Subscript, ast.Expr,
)  # fmt: skip
"""What has a constant without giving it to a variable."""


def names_a_device(text: object) -> bool:
    return isinstance(text, str) and bool(_DEVICE.fullmatch(text))


def may_hold_a_name(module: Module, node: ast.expr) -> bool:
    """The file gives a device name to some variable or attribute, a local name one of its own
    function; or it is a constant that comes from another file."""
    if isinstance(node, ast.Call) and module.qualified(node) == "torch.device":
        return False
    binding = module.once(_binding_names, module.top)
    name = last_name(node)
    if name.isupper() and "." in module.qualified(node):
        return True
    function = outermost_function(module, node) if isinstance(node, ast.Name) else None
    if function is None or not any(
        isinstance(each.ctx, ast.Store) for each in module.uses(name, function)
    ):
        return bool(binding)
    return function in binding or None in binding


def _binding_names(module: Module, file: ast.AST) -> set[ast.AST | None]:
    """The functions in which a device name is more than compared or passed, and None for the file
    around them."""
    return {
        outermost_function(module, each)
        for each in module.nodes(ast.Constant)
        if names_a_device(each.value) and not _is_used_up(module, each)
    }


def _is_used_up(module: Module, node: ast.expr) -> bool:
    above = module.parent(node)
    if isinstance(above, _DISPLAYS):
        above = module.parent(above)
    return isinstance(above, _USING)


def is_named_too(module: Module, device: ast.expr) -> bool:
    """A parameter to which the function gives a name itself: `device = "cpu"`. Who wrote that
    passes names around, whatever the annotation says."""
    function = module.function_of(device)
    if not isinstance(device, ast.Name) or function is None:
        return False
    return device.id in parameter_names(function) and any(
        isinstance(target, ast.Name) and target.id == device.id and _is_a_name(stored.value)
        for stored in module.nodes(ast.Assign, function)
        for target in stored.targets
    )


def _is_a_name(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and names_a_device(value.value)
