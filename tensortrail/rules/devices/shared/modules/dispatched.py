"""Models whose weights have their places, and moves of them by hand, as code shows them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.given_devices import said_device
from tensortrail.rules.shared.moves import moves_to_cpu
from tensortrail.rules.shared.objects import is_true, keyword, unpacks
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import Module

ENABLING = ("enable_model_cpu_offload", "enable_sequential_cpu_offload")
_PLACING = ("dispatch_model", "cpu_offload", "disk_offload", "load_checkpoint_and_dispatch")
_MAP = 2
"""The position of `device_map` in `load_checkpoint_and_dispatch`."""
_SPREAD = frozenset({"auto", "balanced", "balanced_low_0", "sequential"})
_UNDOING = ("remove_hook_from_module", "remove_hook_from_submodules", "remove_all_hooks")


class Moved(NamedTuple):
    call: ast.Call
    name: str
    placed: ast.Call
    """What gave the weights their places."""


def moved_by_hand(module: Module) -> Iterator[Moved]:
    """`model.to("cuda")` after something gave the weights of `model` their places."""
    for scope in (None, *functions(module)):
        for placed in module.nodes(ast.Call, scope):
            if module.function_of(placed) is not scope:
                continue
            at_once = _at_once(module, placed)
            if at_once is not None:
                yield Moved(at_once, module.text(placed.func), placed)
                continue
            name = _placed(module, placed)
            if name:
                yield from _later(module, placed, name)


def _at_once(module: Module, placed: ast.Call) -> ast.Call | None:
    """`from_pretrained(name, device_map="auto").to(device)`."""
    asked = module.parent(placed)
    call = module.parent(asked) if isinstance(asked, ast.Attribute) else None
    if not (isinstance(asked, ast.Attribute) and isinstance(call, ast.Call)):
        return None
    called = module.text(placed.func).rpartition(".")[2]
    if called != "from_pretrained" or not _is_placed(module, placed):
        return None
    return call if _is_move(module, call) and not _decided(module, call) else None


def _is_placed(module: Module, call: ast.Call) -> bool:
    if module.qualified(call.func).startswith("peft."):
        return False  # an adapter follows the map of its base model, whatever it is given
    return _is_spread(call) or is_quantized(module, call)


def is_quantized(module: Module, call: ast.Call) -> bool:
    """`load_in_8bit=`, or a configuration that says so: such a model is not moved by hand."""
    for each in call.keywords:
        if each.arg == "load_in_8bit":
            never = isinstance(each.value, ast.Constant) and not each.value.value
            return not never
        if each.arg == "quantization_config":
            made = behind(module, each.value)
            return isinstance(made, ast.Call) and is_true(keyword(made, "load_in_8bit"))
    return False


def _decided(module: Module, node: ast.AST) -> bool:
    """Whether there is a map, or the weights are quantized, decides about the move."""
    words = ("device_map", "bit", "quant")
    return any(guard.mentions(*words) for guard in module.guards_of(node)) or any(
        isinstance(up, (ast.IfExp, ast.Try)) for up in module.ancestors(node)
    )


def _is_move(module: Module, call: ast.Call) -> bool:
    func = call.func
    if not isinstance(func, ast.Attribute):
        return False
    to_a_device = func.attr == "to" and said_device(module, call) is not None
    return func.attr == "cuda" or (to_a_device and not moves_to_cpu(module, call))


def _placed(module: Module, call: ast.Call) -> str:
    """The name of the model that the call places; "" if it places none."""
    called = module.text(call.func).rpartition(".")[2]
    if called in ENABLING and isinstance(call.func, ast.Attribute):
        return module.text(call.func.value)
    if called == "from_pretrained" and _is_placed(module, call):
        return _stored_as(module, call)
    if called == "load_checkpoint_and_dispatch" and _is_without_map(module, call):
        return ""
    if called in _PLACING and call.args and isinstance(call.args[0], ast.Name):
        return _stored_as(module, call) or call.args[0].id
    return ""


def _is_without_map(module: Module, call: ast.Call) -> bool:
    """It only loads then."""
    given = module.argument(call, _MAP, "device_map")
    none = isinstance(given, ast.Constant) and given.value is None
    return (given is None or none) and not unpacks(call)


def _is_spread(call: ast.Call) -> bool:
    """`device_map="auto"` and the like: the weights may be in several places."""
    for each in call.keywords:
        if each.arg == "device_map" and isinstance(each.value, ast.Constant):
            return each.value.value in _SPREAD
    return False


def _stored_as(module: Module, call: ast.Call) -> str:
    above = module.parent(call)
    if isinstance(above, ast.Assign) and isinstance(above.targets[0], (ast.Name, ast.Attribute)):
        return module.text(above.targets[0])
    return ""


def _later(module: Module, placed: ast.Call, name: str) -> Iterator[Moved]:
    for call in module.later(placed, ast.Call):
        func = call.func
        called = (module.qualified(func) or module.text(func)).rpartition(".")[2]
        if called in _UNDOING or called == "reset_device_map" or _rebinds(module, call, name):
            return
        if not isinstance(func, ast.Attribute) or module.text(func.value) != name:
            continue
        if any(guard.mentions("device_map", "bit", "quant") for guard in module.guards_of(call)):
            continue  # whether there is a map decides about this move
        if _is_move(module, call):
            yield Moved(call, name, placed)
            return


def _rebinds(module: Module, call: ast.Call, name: str) -> bool:
    """Another object goes by the name from here on."""
    above = module.parent(call)
    if not isinstance(above, ast.Assign) or module.text(above.targets[0]) != name:
        return False
    return not (isinstance(call.func, ast.Attribute) and module.text(call.func.value) == name)
