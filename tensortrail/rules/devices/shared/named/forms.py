"""In which form code holds a device: a tensor's own, made of a text, a bare number."""

from __future__ import annotations

import ast

from tensortrail.rules.defaults import none_by_default
from tensortrail.rules.shared import objects
from tensortrail.rules.view import Module

NUMBERED = frozenset({"cuda", "xpu", "mps", "npu", "hpu", "mlu", "musa"})
"""Devices of which a machine may have several."""
_NUMBERS = frozenset({"torch.cuda.current_device", "torch.xpu.current_device"})


def is_of_tensor(module: Module, node: ast.expr) -> bool:
    """`t.device` of a tensor, a parameter or a module, not a `self.device` of some class."""
    if isinstance(node, ast.Name):
        origins = module.value_of(node).origins
        return bool(origins) and all(
            isinstance(each, ast.Attribute) and is_of_tensor(module, each) for each in origins
        )
    if not isinstance(node, ast.Attribute) or node.attr != "device":
        return False
    base = node.value
    if module.value_of(base).is_tensor or goes_to_an_operator(module, base):
        return True
    inner = base.value if isinstance(base, ast.Subscript) else base
    name = inner.attr if isinstance(inner, ast.Attribute) else ""
    return name in ("weight", "data", "_parameters", "_buffers", "bias")


def goes_to_an_operator(module: Module, node: ast.expr) -> bool:
    """`torch.ops.library.name(x)` in the same function: operators take tensors, lists and numbers,
    and of these only a tensor has a device."""
    function = module.function_of(node)
    if function is None or not isinstance(node, ast.Name) or module.value_of(node).kinds:
        return False
    uses = (module.parent(each) for each in module.uses(node.id, function))
    return any(
        isinstance(each, ast.Call) and module.qualified(each.func).startswith("torch.ops.")
        for each in uses
    )


def is_number(module: Module, node: ast.expr) -> bool:
    """The int of `torch.cuda.current_device()`, on every path."""
    if isinstance(node, ast.Name):
        if not any(module.calls("current_device")):
            return False
        origins = module.value_of(node).origins
        return bool(origins) and all(
            isinstance(each, ast.Call) and is_number(module, each) for each in origins
        )
    return isinstance(node, ast.Call) and module.qualified(node.func) in _NUMBERS


def made_device(module: Module, node: ast.expr) -> ast.Call | None:
    """The `torch.device(...)` call that the value is."""
    if isinstance(node, ast.Name):
        if not any(module.calls("device")):
            return None
        origins = module.value_of(node).origins
        made = origins[0] if len(origins) == 1 else None
        return made_device(module, made) if isinstance(made, ast.Call) else None
    if isinstance(node, ast.Call) and module.qualified(node.func) == "torch.device":
        return node
    return None


def is_callers(module: Module, node: ast.expr) -> bool:
    """A parameter that is handed in: any form of device."""
    function = module.function_of(node)
    if function is None or not isinstance(node, ast.Name):
        return False
    given = function.args
    return node.id in [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def zero_for_none(module: Module, call: ast.Call) -> ast.BoolOp | None:
    """`index or 0` as the number of a device, where `index` is an argument that may be None."""
    if module.qualified(call.func) not in ("torch.device", "torch.cuda.device"):
        return None
    for each in objects.given(call):
        if not isinstance(each, ast.BoolOp) or not isinstance(each.op, ast.Or):
            continue
        first, last = each.values[0], each.values[-1]
        is_zero = isinstance(last, ast.Constant) and last.value == 0
        if is_zero and is_callers(module, first) and _may_be_none(module, first):
            return each
    return None


def _may_be_none(module: Module, name: ast.expr) -> bool:
    function = module.function_of(name)
    if function is None or not isinstance(name, ast.Name):
        return False
    return none_by_default(function.args, name.id) is not None


def is_used(module: Module, node: ast.Attribute) -> bool:
    """The number goes into a dictionary, a call or a text."""
    up = module.parent(node)
    while isinstance(up, ast.IfExp):
        up = module.parent(up)
    return isinstance(up, (ast.Dict, ast.Call, ast.FormattedValue, ast.Subscript))


def asks_for_number(module: Module, node: ast.Attribute) -> bool:
    function = module.function_of(node)
    text = module.text(function) if function is not None else ""
    shown = module.text(node)
    asked = (f"{shown} is", f"{shown} or", f"{shown} ==", f"if {shown}", f"not {shown}")
    return any(each in text for each in asked)


def is_tested(module: Module, node: ast.AST) -> bool:
    """A condition asks for the class of a value, or whether it has the attribute."""
    if any(guard.mentions("isinstance", "hasattr", "str(") for guard in module.guards_of(node)):
        return True
    return any(
        isinstance(up, (ast.IfExp, ast.BoolOp)) and "isinstance" in module.text(up)
        for up in module.ancestors(node)
        if isinstance(up, ast.expr)
    )


def other_number(last: ast.expr) -> str:
    """A number that stands for none, such as -1."""
    if not isinstance(last, ast.UnaryOp) or not isinstance(last.op, ast.USub):
        return ""
    number = last.operand.value if isinstance(last.operand, ast.Constant) else None
    return f"-{number}" if isinstance(number, int) else ""
