"""Why a call that leaves out a `device` or `dtype` is surely meant to be given it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tensortrail.rules.devices.shared.calls.accepted import is_maker, is_weighted_layer, passes_on
from tensortrail.rules.devices.shared.calls.own_layers import goes_into_own_layers
from tensortrail.rules.devices.shared.calls.parts import is_a_part
from tensortrail.rules.devices.shared.calls.twins import is_moved_there_later
from tensortrail.rules.devices.shared.written_for.device_aware import is_in_module
from tensortrail.rules.shared.functions import parameters
from tensortrail.rules.shared.named_for_cpu import is_named_for_the_cpu
from tensortrail.rules.shared.objects import called
from tensortrail.rules.view import FunctionNode, Module

_KEEPERS = frozenset({"Parameter", "Buffer", "register_buffer", "register_parameter"})


def is_surely_meant(
    module: Module,
    function: FunctionNode,
    call: ast.Call,
    name: str,
    given: Sequence[ast.Call],
    left: Sequence[ast.Call],
) -> bool:
    """`given` are the calls of the function that are given it, `left` those that are not."""
    if is_named_for_the_cpu(module, call):
        return False
    if name == "dtype":
        pairs = list(given_both(module, function))
        alike = _is_alike(module, call, given, left) or _is_half_of_a_pair(module, call, pairs)
        return alike and not _is_cast_later(module, call)
    alike = is_in_module(module, call) and _is_alike(module, call, given, left)
    kept = alike or _is_part_of_a_module(module, function, call, given)
    return (kept or goes_into_own_layers(module, function, call)) and not _is_a_buffer(module, call)


def _is_cast_later(module: Module, call: ast.Call) -> bool:
    """What is computed after it is cast to the dtype: `torch.log(x).to(dtype)`."""
    return any(
        called(each) in ("to", "type") and any(map(_is_dtype, each.args))
        for each in module.later(call, ast.Call)
    )


def _is_dtype(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "dtype"


def _is_alike(
    module: Module, call: ast.Call, given: Sequence[ast.Call], left: Sequence[ast.Call]
) -> bool:
    """Another call of the same function is given it, and this is the only one without."""
    if called(call) == "tensor" or is_moved_there_later(module, call, "device"):
        return False  # numbers as often as not, or what becomes of it follows
    callee = module.text(call.func)
    same = [each for each in given if module.text(each.func) == callee]
    return bool(same) and sum(module.text(each.func) == callee for each in left) == 1


def given_both(module: Module, function: FunctionNode) -> Iterator[ast.Call]:
    """Calls that are given the `device` and the `dtype` of the function, moves too."""
    if {"device", "dtype"} <= {each.arg for each in parameters(function)}:
        for call in module.nodes(ast.Call, function):
            both = passes_on(call, "device") and passes_on(call, "dtype")
            if both and module.function_of(call) is function:
                yield call


def _is_half_of_a_pair(module: Module, call: ast.Call, pairs: Sequence[ast.Call]) -> bool:
    """It is given the device; others of the function are given the device and the dtype. A norm
    is often computed in full precision, and of a comparison the dtype is lost."""
    if not pairs or called(call).endswith("Norm") or isinstance(module.parent(call), ast.Compare):
        return False
    return any(
        each.arg == "device" and isinstance(each.value, ast.Name) and each.value.id == "device"
        for each in call.keywords
    )


def _is_a_buffer(module: Module, call: ast.Call) -> bool:
    """It holds what the constructor works out, which would be lost if it were made on meta with
    the others; and it moves with the module."""
    return any(
        isinstance(above, ast.Call) and called(above) == "register_buffer"
        for above in module.ancestors(call)
    )


def _is_part_of_a_module(
    module: Module, function: FunctionNode, call: ast.Call, given: Sequence[ast.Call]
) -> bool:
    """A constructor makes other layers or tensors on its device, and this one is kept too."""
    made = any(is_maker(module, each) or is_weighted_layer(module, each) for each in given)
    kept = is_weighted_layer(module, call) or is_a_part(module, call)
    kept = kept or any(
        isinstance(each, ast.Call) and called(each) in _KEEPERS for each in module.ancestors(call)
    )
    return function.name == "__init__" and made and kept
