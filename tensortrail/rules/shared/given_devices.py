"""Whether code says on which device something is made: by what it is given, or around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.dtypes import is_dtype
from tensortrail.rules.shared.functions import outermost_function
from tensortrail.rules.shared.objects import calls_in, given
from tensortrail.rules.shared.origins import text_behind
from tensortrail.rules.view import Module
from tensortrail.rules.words import Kind

_DEVICES = (Kind.DEVICE, Kind.DEVICE_STRING)
_ASKS_FIRST = frozenset({"to", "to_empty"})
"""Methods whose first argument may be any device: that of `cuda` is a GPU."""


def says_device(module: Module, made: ast.expr) -> bool:
    """`Net(device)`, `Net(8, place=where).eval()`: a call in it is given a device."""
    return any(is_given_device(module, each) for each in calls_in(module, made))


def is_given_device(module: Module, call: ast.Call) -> bool:
    named = any("device" in (each.arg or "") for each in call.keywords)
    return named or any(is_device(module, each) for each in given(call))


def is_device(module: Module, node: ast.expr) -> bool:
    """By its kind, because the same name is given to something as a device, or by its name."""
    if "device" in module.text(node) or is_used_as_device(module, node):
        return True  # what costs most is asked last
    if isinstance(node, ast.Constant) and not isinstance(node.value, str):
        return False
    value = module.value_of(node)
    return bool(value.kinds) and value.is_only(*_DEVICES)


def is_used_as_device(module: Module, node: ast.expr) -> bool:
    """`where` beside `x.to(where)`, and `self.where` anywhere in the file."""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return False
    around = outermost_function(module, node) if isinstance(node, ast.Name) else None
    said = module.once(_said_as_devices, around or module.top).get(module.text(node), ())
    return any(not module.value_of(each).is_tensor for each in said)


def _said_as_devices(module: Module, scope: ast.AST) -> dict[str, list[ast.expr]]:
    """What stands where a device may be given, by its text: `other` of `x.to(other)` too."""
    inside = None if scope is module.top else scope
    found: dict[str, list[ast.expr]] = {}
    for call in module.nodes(ast.Call, inside):
        said = said_device(module, call)
        if isinstance(said, (ast.Name, ast.Attribute)):
            found.setdefault(module.text(said), []).append(said)
    return found


def said_device(module: Module, call: ast.Call) -> ast.expr | None:
    """`d` of `torch.zeros(2, device=d)` and of `x.to(d)`."""
    for each in call.keywords:
        if each.arg == "device":
            return each.value
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if method in _ASKS_FIRST and call.args and not is_dtype(module, call.args[0]):
        return call.args[0]
    return None


def under_device(module: Module, node: ast.AST) -> bool:
    """`with torch.device(d):` around it, at once or by a name."""
    return any(_of_device(module, each) for each in module.contexts_of(node))


def _of_device(module: Module, context: ast.expr) -> bool:
    return "device" in text_behind(module, context) or "torch.device" in _called(module, context)


def _called(module: Module, context: ast.expr) -> Iterator[str]:
    return (module.qualified(each.func) for each in calls_in(module, context))
