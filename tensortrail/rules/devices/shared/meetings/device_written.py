"""How the device of a place is written in the code, and a factory call with it."""

from __future__ import annotations

import ast

from tensortrail.findings import Fix, Safety
from tensortrail.rules.devices.shared.written_for.device_aware import FORWARD
from tensortrail.rules.places import (
    FunctionPlaces,
    Place,
    What,
    Where,
)
from tensortrail.rules.shared.functions import parameter_names
from tensortrail.rules.shared.mends import device_given
from tensortrail.rules.view import FunctionNode, Module


def device_expression(
    places: FunctionPlaces, place: Place, function: FunctionNode, before: ast.AST
) -> str:
    """How the device of that place can be written at a node of the function; "" if it cannot."""
    arguments = parameter_names(function)
    if place.where is Where.LITERAL:
        return repr(place.subject)
    if place.where is Where.DEVICE and (
        place.subject.partition(".")[0] in arguments
        or _is_named_before(places, place.subject, before)
    ):
        return place.subject
    if place.where is Where.LOCAL:
        return f"{place.subject}.device"  # what was made after it stands where it has a value
    if place.where is Where.OF and "[" not in place.subject:
        root = place.subject.partition(".")[0]
        return f"{place.subject}.device" if root in arguments else ""
    named = _device_of_a_name(places, place, before)
    if not named and place.where is Where.SELF and function.name in FORWARD:
        return _device_of_an_argument(places, function)
    return named


def _is_named_before(places: FunctionPlaces, device: str, before: ast.AST) -> bool:
    """The function has used the device already, so it has a value there."""
    line: int = getattr(before, "lineno", 0)
    return any(
        isinstance(node, ast.Name) and node.id == device and node.lineno < line
        for node in places.seen
    )


def _device_of_an_argument(places: FunctionPlaces, function: FunctionNode) -> str:
    """`x.device` of the first argument that is used as a tensor."""
    shown = _used_as_tensors(places)
    return next((f"{each.arg}.device" for each in function.args.args if each.arg in shown), "")


def _used_as_tensors(places: FunctionPlaces) -> set[str]:
    found = {
        node.id
        for node, held in places.seen.items()
        if isinstance(node, ast.Name) and held.what is What.TENSOR and held.path == node.id
    }
    for node in places.seen:
        func = node.func if isinstance(node, ast.Call) else node
        if (
            isinstance(func, ast.Attribute)
            and func.attr in ("shape", "device", "dtype", "size")
            and isinstance(func.value, ast.Name)
        ):
            found.add(func.value.id)
    return found - {"self"}


def _device_of_a_name(places: FunctionPlaces, place: Place, before: ast.AST) -> str:
    """`x.device` of the nearest tensor that lies there and has a name already."""
    line: int = getattr(before, "lineno", 0)
    names = [
        (node.lineno, ast.unparse(node))
        for node, held in places.seen.items()
        if isinstance(node, (ast.Name, ast.Attribute))
        and held.what is What.TENSOR
        and held.only is not None
        and held.only.where is place.where
        and not isinstance(node.ctx, ast.Del)
        and node.lineno < line
    ]
    return f"{max(names)[1]}.device" if names else ""


def made_there(
    module: Module, function: FunctionNode, places: FunctionPlaces, made: ast.AST, there: Place
) -> Fix | None:
    """The factory call with the device of that place."""
    if not isinstance(made, ast.Call) or not (made.args or made.keywords):
        return None
    if (module.function_of(made) or module.top) is not function:
        return None
    device = device_expression(places, there, function, made)
    if not device or module.qualified(made.func).endswith("Tensor"):
        return None
    edit = device_given(module, made, device)
    return module.fix(f"make it on `{device}`", Safety.UNSAFE, edit) if edit else None
