"""What is a device, and what is its text or its type, as far as the code around it says."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from tensortrail.rules.devices.shared.named.device_values import is_device
from tensortrail.rules.devices.shared.named.forms import NUMBERED, made_device
from tensortrail.rules.shared.annotations import DEVICE, names_type
from tensortrail.rules.shared.functions import parameters
from tensortrail.rules.shared.stored import stored_under
from tensortrail.rules.view import Module

_SETTINGS = re.compile(r"self|cls|.*(arg|conf|cfg|opt|setting|param|flag|hp)s?.*", re.I)
"""Owners of a `device` that is often a text."""


def constant_text(module: Module, node: ast.expr) -> str | None:
    said: object = node.value if isinstance(node, ast.Constant) else None
    if isinstance(node, ast.Name) and (node.id.isupper() or any(stored_under(module, node.id))):
        said = module.value_of(node).constant
    return said if isinstance(said, str) else None


def may_tell_a_device(module: Module, node: ast.expr) -> bool:
    """Seen without following values: `str(d)`, a name for it, `d.type`."""
    if isinstance(node, ast.Name):
        of_devices = any(module.calls("str")) and _may_be(module, node.id, _is_a_text)
        return of_devices or any(_is_type_text(each) for each in stored_under(module, node.id))
    if isinstance(node, ast.Attribute):
        return node.attr == "type"
    return _is_a_text(module, node)


def may_be_known_device(module: Module, node: ast.expr) -> bool:
    """What `is_known_device` says may be true, without following values."""
    if isinstance(node, ast.Name):
        return _may_be(module, node.id, _may_be_a_device)
    return _may_be_a_device(module, node)


def _may_be(module: Module, name: str, asked: Callable[[Module, ast.expr], bool]) -> bool:
    """It is asked of all that the file stores under the name; constants of other files have names
    in capitals."""
    return name.isupper() or any(asked(module, each) for each in stored_under(module, name))


def _may_be_a_device(module: Module, node: ast.expr) -> bool:
    made = isinstance(node, ast.Call) and module.qualified(node.func) == "torch.device"
    return made or isinstance(node, (ast.Name, ast.Attribute))


def _is_a_text(module: Module, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "str"


def _is_type_text(node: ast.expr) -> bool:
    """`"cuda"`, `"cuda" if torch.cuda.is_available() else "cpu"`."""
    if isinstance(node, ast.IfExp):
        return _is_type_text(node.body) and _is_type_text(node.orelse)
    return isinstance(node, ast.Constant) and node.value in NUMBERED | {"cpu"}


def texts_in(module: Module, node: ast.expr) -> list[str]:
    """Of `("cuda", "gpu")`."""
    members = node.elts if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else []
    found = [constant_text(module, each) for each in members]
    return [each for each in found if each is not None]


def made_a_text(module: Module, node: ast.expr) -> ast.expr | None:
    """`d` of `str(d)`, and of a name for it."""
    origins = module.value_of(node).origins if isinstance(node, ast.Name) else (node,)
    call = origins[0] if len(origins) == 1 else None
    named = call is not None and _is_a_text(module, call)
    return call.args[0] if named and isinstance(call, ast.Call) and len(call.args) == 1 else None


def names_a_number(text: str | None) -> bool:
    kind, _, number = (text or "").partition(":")
    return kind in NUMBERED and number.isdigit()


def is_no_type(text: str) -> bool:
    kind, _, number = text.partition(":")
    return (kind in NUMBERED and number.isdigit()) or text.lower() == "gpu"


def is_type_of_a_device(module: Module, node: ast.expr) -> bool:
    """`x.device.type`, and a variable that holds a type as a text on every path."""
    if isinstance(node, ast.Name):
        origins = module.value_of(node).origins
        return bool(origins) and all(map(_is_type_text, origins))
    if not isinstance(node, ast.Attribute) or node.attr != "type":
        return False
    return is_known_device(module, node.value) or module.text(node.value).endswith(".device")


def tells_a_device(module: Module, node: ast.expr) -> bool:
    """The text of a device, or of an argument that is said to be one; or its type."""
    device = made_a_text(module, node) if may_tell_a_device(module, node) else None
    if device is None:
        return is_type_of_a_device(module, node)
    return is_known_device(module, device) or _is_said_to_be_one(module, device)


def _is_said_to_be_one(module: Module, node: ast.expr) -> bool:
    """`device: torch.device`: who makes a text of it does not expect one."""
    function = module.function_of(node)
    if function is None or not isinstance(node, ast.Name):
        return False
    given = function.args
    every = (*given.posonlyargs, *given.args, *given.kwonlyargs)
    return any(
        each.arg == node.id
        and each.annotation is not None
        and "torch.device" in (module.qualified(each.annotation), _written(each.annotation))
        for each in every
    )


def takes_a_device(module: Module, node: ast.expr) -> bool:
    """An argument that is annotated as a device, alone or beside a text, and that the function does
    not make into something else."""
    function = module.function_of(node)
    if function is None or not isinstance(node, ast.Name):
        return False
    given = next((each for each in parameters(function) if each.arg == node.id), None)
    if given is None or not _may_be_one(module, given.annotation):
        return False
    return not any(isinstance(each.ctx, ast.Store) for each in module.uses(node.id, function))


def _may_be_one(module: Module, annotation: ast.expr | None) -> bool:
    """`torch.device`, `str | torch.device`, and no mapping to devices."""
    if annotation is None or not names_type(module, annotation, DEVICE):
        return False
    holders = [each.value for each in ast.walk(annotation) if isinstance(each, ast.Subscript)]
    return all(module.text(each).endswith(("Union", "Optional")) for each in holders)


def _written(annotation: ast.expr) -> object:
    return annotation.value if isinstance(annotation, ast.Constant) else None


def is_known_device(module: Module, node: ast.expr) -> bool:
    """A device on every path: made as one, or asked of what has one. An argument, and what is
    annotated as a device, may be a text."""
    sources = module.value_of(node).origins if isinstance(node, ast.Name) else (node,)
    return bool(sources) and all(
        made_device(module, each) is not None
        or (isinstance(each, ast.Attribute) and is_device(module, each))
        for each in sources
    )


def is_of_an_object(module: Module, node: ast.expr) -> bool:
    """`model.device`, `trainer.accelerator.device`; the `device` of settings may be a text."""
    sources = module.value_of(node).origins if isinstance(node, ast.Name) else (node,)
    return bool(sources) and all(
        isinstance(each, ast.Attribute)
        and each.attr == "device"
        and isinstance(each.value, (ast.Name, ast.Attribute))
        and not _SETTINGS.fullmatch(module.text(each.value).rpartition(".")[2])
        for each in sources
    )
