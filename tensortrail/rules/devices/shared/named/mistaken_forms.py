"""Where code takes one form of a device for another: a string, a number, a device."""

from __future__ import annotations

import ast

from tensortrail.findings import Fix, Safety
from tensortrail.rules import Kind, Module
from tensortrail.rules.devices.shared.named.device_names_held import names_a_device
from tensortrail.rules.devices.shared.named.forms import (
    asks_for_number,
    is_callers,
    is_tested,
    is_used,
    made_device,
)
from tensortrail.rules.shared.annotations import DEVICE, names_type
from tensortrail.rules.shared.given_devices import said_device

_EITHER = (
    {Kind.DEVICE_STRING},
    {Kind.DEVICE, Kind.DEVICE_STRING},
    {Kind.DEVICE, Kind.OTHER},
)
"""Kinds of a value that is a string on some path: `str | torch.device`."""


def no_device(module: Module, device: ast.expr) -> str:
    """What `d` of `d.type` and `d.index` may be instead: "a string", "a number"."""
    value = module.value_of(device)
    if value.origins and all(_is_integer(each) for each in value.origins):
        return "a number"
    if any(names_type(module, each, DEVICE) for each in value.origins):
        return ""
    if not isinstance(device, ast.Name):  # which other code may set before
        return "a string" if value.sure and value.kinds == {Kind.DEVICE_STRING} else ""
    told = value.sure and value.kinds in _EITHER
    is_text = told or any(map(_is_text_on_a_path, value.origins))
    return "a string" if is_text else ""


def _is_integer(node: ast.expr) -> bool:
    """`int(os.environ["LOCAL_RANK"])`"""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "int"
    return isinstance(node, ast.Constant) and type(node.value) is int


def _is_text_on_a_path(node: ast.expr) -> bool:
    """`rank if torch.cuda.is_available() else "cpu"`"""
    if isinstance(node, ast.IfExp):
        return _is_text_on_a_path(node.body) or _is_text_on_a_path(node.orelse)
    if isinstance(node, ast.JoinedStr):
        return bool(node.values) and _is_named_before_number(node.values[0])
    return isinstance(node, ast.Constant) and names_a_device(node.value)


def _is_named_before_number(node: ast.expr) -> bool:
    """The `cuda:` of `f"cuda:{n}"`."""
    return isinstance(node, ast.Constant) and names_a_device(str(node.value).removesuffix(":"))


def asks_a_device(module: Module, node: ast.Attribute) -> bool:
    """`d.type` and `d.index`, and not whether `d` is a device at all."""
    above = module.parent(node)
    is_called = isinstance(above, ast.Call) and above.func is node  # `"cuda:0".index(":")`
    return not is_called and not is_tested(module, node)


def made_of_what_was_given(module: Module, node: ast.Attribute) -> ast.Call | None:
    """The call that made the device, of `.index` of one that was made of what a caller gave."""
    made = made_device(module, node.value) if is_used(module, node) else None
    if made is None or len(made.args) != 1 or made.keywords:
        return None
    given = is_callers(module, made.args[0]) and not asks_for_number(module, node)
    return made if given else None


def number_or_itself(module: Module, chosen: ast.IfExp) -> str:
    """`d` of `d.index if isinstance(d, torch.device) else d`."""
    body, test = chosen.body, chosen.test
    if not (isinstance(body, ast.Attribute) and body.attr == "index"):
        return ""
    shown = module.text(body.value)
    asked = isinstance(test, ast.Call) and module.qualified(test.func) == "isinstance"
    same = asked and module.text(chosen.orelse) == shown and names_type(module, test, DEVICE)
    return shown if same else ""


def number_of_other_backend(module: Module, call: ast.Call) -> tuple[ast.Call, str] | None:
    """`device=accelerator().current_device()`, a bare number, which means CUDA or the default: the
    number, and `accelerator()`."""
    said = said_device(module, call)
    if not isinstance(said, ast.Call) or not isinstance(said.func, ast.Attribute):
        return None
    if said.func.attr != "current_device" or module.qualified(said).startswith("torch."):
        return None
    owner = module.text(said.func.value)
    named = (
        isinstance(each.func, ast.Attribute) and module.text(each.func.value) == owner
        for each in module.calls("current_device_name")
    )
    return (said, owner) if any(named) else None


def is_normalized(module: Module, compare: ast.Compare, tensors: ast.expr) -> bool:
    """The same condition also compares types, or the other form."""
    up = module.parent(compare)
    return isinstance(up, ast.BoolOp) and ".type" in module.text(up)


def compared_by_type(
    module: Module, compare: ast.Compare, tensors: ast.expr, kind: str
) -> Fix | None:
    sign = "==" if isinstance(compare.ops[0], ast.Eq) else "!="
    edit = module.replace(compare, f'{module.text(tensors)}.type {sign} "{kind}"')
    return module.fix("compare the type", Safety.UNSAFE, edit)
