"""Tensors on a device that a value names: moved there, or computed by a model from one that was."""

from __future__ import annotations

import ast

from tensortrail.rules.devices.shared.written_for.moved_objects import is_of_moved
from tensortrail.rules.places import Place, What, Where
from tensortrail.rules.shared.dtypes import is_dtype
from tensortrail.rules.shared.functions import parameters
from tensortrail.rules.shared.given_devices import said_device
from tensortrail.rules.shared.moves import ACCELERATORS
from tensortrail.rules.shared.objects import all_given, called, given, receiver
from tensortrail.rules.shared.tensor_methods import JOINING, REDUCING, SAME_DEVICE
from tensortrail.rules.text_of import text_of
from tensortrail.rules.view import Module
from tensortrail.rules.words import NOT_CONSTANT, Kind

_DEPTH = 12
_ONE_TENSOR = SAME_DEVICE | REDUCING | {"data", "T", "mT", "forward", "values", "indices"}


def told_device(module: Module, node: ast.expr, depth: int = _DEPTH) -> ast.expr | None:
    """`device` of `pred = model(x.to(device))`: where the tensor lies on every path."""
    if not depth or module.placement_at(node).device == "cpu":
        return None
    function = module.function_of(node)
    held = module.places(function or module.top).seen.get(node)
    if held is not None and held.what in (What.NUMBER, What.NONE):
        return None
    if held is not None and any(_is_elsewhere(each) for each in held.places):
        return None
    match node:
        case ast.Name():
            return _agreed(module, node, depth)
        case ast.Subscript(value=value) | ast.Attribute(value=value) | ast.Starred(value=value):
            return told_device(module, value, depth - 1)
        case ast.DictComp(value=value) | ast.ListComp(elt=value) | ast.GeneratorExp(elt=value):
            return told_device(module, value, depth - 1)
        case ast.BinOp(left=left, right=right):
            return told_device(module, left, depth - 1) or told_device(module, right, depth - 1)
        case ast.Call():
            return _of_call(module, node, depth)
    return None


def _agreed(module: Module, name: ast.Name, depth: int) -> ast.expr | None:
    """Every assignment that may have given the value puts it on a device that is a value."""
    told = [told_device(module, each, depth - 1) for each in module.value_of(name).origins]
    return told[0] if told and None not in told else None


def _of_call(module: Module, call: ast.Call, depth: int) -> ast.expr | None:
    last, owner = called(call), receiver(call)
    if last == "to":
        return _moved(module, call, depth)
    if last in ACCELERATORS and owner is not None:
        return call
    if module.qualified(call.func).startswith("torch."):
        said = said_device(module, call)
        if said is not None:
            return said if may_be_a_gpu(module, said) else None
        known = last in SAME_DEVICE | JOINING | REDUCING
        told = _any(module, given(call), depth) if known else None
        return told or (_of_members(module, call, depth) if last in JOINING else None)
    if owner is not None and last in _ONE_TENSOR and last != "forward":
        return told_device(module, owner, depth - 1)
    if owner is not None and last in JOINING:
        return _any(module, [owner, *given(call)], depth)
    if _is_model(module, call) or is_of_moved(module, call):
        return _any(module, all_given(call), depth)
    return None


def _of_members(module: Module, call: ast.Call, depth: int) -> ast.expr | None:
    """Of `torch.cat(rows["true"])`, where one line puts all that is in the list into it."""
    rows = call.args[0] if call.args else None
    if not isinstance(rows, ast.Subscript) or not isinstance(rows.slice, ast.Constant):
        return None
    adding = module.calls("append", inside=module.function_of(call))
    adds = [each for each in adding if _is_of(each, text_of(rows))]
    return _any(module, given(adds[0]), depth) if len(adds) == 1 else None


def _is_of(call: ast.Call, owner: str) -> bool:
    own = receiver(call)
    return own is not None and text_of(own) == owner


def _any(module: Module, parts: list[ast.expr], depth: int) -> ast.expr | None:
    told = (told_device(module, each, depth - 1) for each in parts)
    return next((each for each in told if each is not None), None)


def _moved(module: Module, call: ast.Call, depth: int) -> ast.expr | None:
    said = next((each.value for each in call.keywords if each.arg == "device"), None)
    if said is None and call.args and not is_dtype(module, call.args[0]):
        said = call.args[0]
    if said is None:
        owner = receiver(call)
        return told_device(module, owner, depth - 1) if owner is not None else None
    return said if may_be_a_gpu(module, said) else None


def may_be_a_gpu(module: Module, said: ast.expr) -> bool:
    """A value that may name one: a name or attribute, which is no tensor and not the CPU."""
    value = module.value_of(said)
    if names_a_gpu(module, said):
        return True
    if not isinstance(said, (ast.Name, ast.Attribute)):
        return False
    if value.constant is not NOT_CONSTANT or value.is_tensor:
        return False
    texts = [module.text(each) for each in value.origins]
    return not any("cpu" in each and "cuda" not in each for each in texts)


def names_a_gpu(module: Module, said: ast.expr) -> bool:
    """`"cuda:0"` or `x.cuda()`: no device that is a GPU on some machines only."""
    if isinstance(said, ast.Call):
        return called(said) in ACCELERATORS
    return str(module.value_of(said).constant).partition(":")[0] in ACCELERATORS


def _is_elsewhere(place: Place) -> bool:
    """Not where a value says, and not on a GPU that is written out."""
    on_a_gpu = place.where is Where.LITERAL and place.subject.partition(":")[0] in ACCELERATORS
    known = place.where not in (Where.DEVICE, Where.SELF, Where.UNKNOWN, Where.LOCAL)
    return known and not on_a_gpu


def _is_model(module: Module, call: ast.Call) -> bool:
    """A module is called, or an object that the function was given or that was built here."""
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr == "forward":
        func = func.value
    if module.kind_of(func) is Kind.MODULE:
        return True
    if isinstance(func, ast.Attribute):
        return bool(module.value_of(func).origins)
    return isinstance(func, ast.Name) and _is_given_or_built(module, func)


def _is_given_or_built(module: Module, func: ast.Name) -> bool:
    origins = module.value_of(func).origins
    if origins:
        return all(isinstance(each, ast.Call) for each in origins)
    function = module.function_of(func)
    return function is not None and func.id in {each.arg for each in parameters(function)}
