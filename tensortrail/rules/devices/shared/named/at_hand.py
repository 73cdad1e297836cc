"""The device that is at hand in a function, to be used instead of one that is written out."""

from __future__ import annotations

import ast

from tensortrail.patterns import pattern
from tensortrail.rules.devices.shared.named.accelerators import (
    accelerator_given,
    accelerator_of_file,
    is_accelerator,
)
from tensortrail.rules.devices.shared.named.devices_said import (
    device_parameter,
    devices_said,
    is_of_library,
)
from tensortrail.rules.devices.shared.named.named_gpus import is_cuda_literal
from tensortrail.rules.devices.shared.named.own_devices import kept_names, own_device, own_launcher
from tensortrail.rules.devices.shared.named.written import written_literals
from tensortrail.rules.shared.conditions import are_exclusive
from tensortrail.rules.shared.factories import is_factory
from tensortrail.rules.shared.functions import names_of_parameters
from tensortrail.rules.shared.objects import file_around, is_self, keyword, last_name
from tensortrail.rules.view import FunctionNode, Module


def at_hand_in(module: Module, function: FunctionNode) -> ast.AST | None:
    """What the function can use instead: its parameter, or `accelerator.device`."""
    parameter = device_parameter(module, function)
    if parameter is not None:
        return parameter
    for node in module.nodes(ast.Attribute, function):
        owner = node.value
        if node.attr != "device" or not isinstance(owner, ast.Name):
            continue
        if not is_of_library(module, node) and is_accelerator(module, function, owner):
            return node
    own = own_device(module, function) or accelerator_given(module, function)
    found = own or _mapped_model(module, function) or own_launcher(module, function)
    found = found or _of_a_tensor(module, function)
    file = file_around(module, function)
    return found or module.once(accelerator_of_file, file) or module.once(_device_helper, file)


_HELPER = pattern(r"(get_)?((current|local|torch|default|accelerator|compute)_)*device(_name|_id)?")


def _device_helper(module: Module, file: ast.AST) -> ast.Call | None:
    """`get_current_device()` or `devices.get_device()` of another file, which this file asks where
    to put things."""
    for _, said in devices_said(module, file):
        sources = module.value_of(said).origins if isinstance(said, ast.Name) else (said,)
        for each in sources:
            if isinstance(each, ast.Call) and _is_helper(module, each.func):
                return each
    return None


def _is_helper(module: Module, func: ast.expr) -> bool:
    root = func.value if isinstance(func, ast.Attribute) else func
    if not isinstance(root, ast.Name) or not _HELPER.fullmatch(last_name(func)):
        return False
    return module.once(_imported, module.top).get(root.id, "torch") != "torch"


def _imported(module: Module, _: ast.AST) -> dict[str, str]:
    """The names that the file imports, each with the package that it comes from."""
    found: dict[str, str] = {}
    for node in module.nodes(ast.Import):
        for alias in node.names:
            found[alias.asname or alias.name.partition(".")[0]] = alias.name.partition(".")[0]
    for each in module.nodes(ast.ImportFrom):
        package = (each.module or "").partition(".")[0]
        found.update((alias.asname or alias.name, package) for alias in each.names)
    return found


def _of_a_tensor(module: Module, function: FunctionNode) -> ast.Attribute | None:
    """`grads[0].device`, on which one branch makes a tensor, if the other branch writes a GPU for
    its own, and nothing is moved to one."""
    written = [call for call, _ in written_literals(module, function)]
    if not written or not all(_makes_a_tensor(module, each) for each in written):
        return None
    for call, said in devices_said(module, function):
        read = isinstance(said, ast.Attribute) and said.attr == "device"
        if not isinstance(said, ast.Attribute) or not read or is_of_library(module, said):
            continue
        instead = any(are_exclusive(module, each, call) for each in written)
        bound = _is_bound_before(module, function, said, written[0])
        if instead and bound and _makes_a_tensor(module, call):
            return said
    return None


def _is_bound_before(
    module: Module, function: FunctionNode, read: ast.Attribute, call: ast.Call
) -> bool:
    """The tensor has its name where the call stands."""
    root = next((each for each in ast.walk(read) if isinstance(each, ast.Name)), None)
    if root is None:
        return False
    stored = [each for each in module.uses(root.id, function) if isinstance(each.ctx, ast.Store)]
    given = root.id in names_of_parameters(function)
    return (given and not stored) or any(each.lineno < call.lineno for each in stored)


def _makes_a_tensor(module: Module, call: ast.Call) -> bool:
    return is_factory(module, call) and keyword(call, "device") is not None


def is_setting(module: Module, function: FunctionNode, at_hand: ast.AST, written: ast.Call) -> bool:
    """`self.device`, where the function puts nothing there but what it computed on the GPU that it
    writes out: it may only say which GPU."""
    if not isinstance(at_hand, ast.Attribute) or not is_self(at_hand.value):
        return False
    shown = module.text(at_hand)
    return not any(
        module.text(said) == shown and written not in ast.walk(call)
        for call, said in devices_said(module, function)
    )


def _mapped_model(module: Module, function: FunctionNode) -> ast.Name | None:
    """`model` of `model = AutoModel.from_pretrained(name, device_map="auto")`."""
    for call in module.calls("from_pretrained", inside=function):
        stored = module.parent(call)
        spread = any(
            each.arg == "device_map"
            and not is_cuda_literal(module, each.value)
            and not isinstance(each.value, ast.Dict)
            for each in call.keywords
        )
        if spread and isinstance(stored, ast.Assign) and isinstance(stored.targets[0], ast.Name):
            return stored.targets[0]
    return None


def shown_device(module: Module, at_hand: ast.AST) -> str:
    if isinstance(at_hand, ast.arg):
        return at_hand.arg
    text, cls = module.text(at_hand), module.class_of(at_hand)
    if isinstance(at_hand, ast.Name):
        return f"{text}.device"
    owner, _, last = text.rpartition(".")
    kept = module.once(kept_names, cls).get(owner) if cls is not None else None
    return f"{kept}.{last}" if kept is not None and last == "device" else text
