"""Which calls accept an argument of a name, and are not given it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from tensortrail.rules.devices.shared.calls.customs import (
    MAKERS,
    may_be_given_anything,
    named,
)
from tensortrail.rules.devices.shared.named.devices_said import devices_said
from tensortrail.rules.project_facts import Namesake
from tensortrail.rules.shared.functions import parameters
from tensortrail.rules.shared.objects import is_of_torch, is_one_of, last_name
from tensortrail.rules.view import FunctionNode, Module

_OF_FACTORIES = frozenset({"device", "dtype", "generator"})
_ENOUGH_IN_FILE = 2
_RANDOM = frozenset({"rand", "randn", "randint", "randperm"})
_OWN = frozenset({"self.device", "self._device", "accelerator.device", "self.accelerator.device"})
_LAYERS = frozenset(
    "Linear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d "
    "Embedding EmbeddingBag LayerNorm RMSNorm GroupNorm BatchNorm1d BatchNorm2d BatchNorm3d "
    "MultiheadAttention LSTM GRU RNN PReLU".split()
)
_UNTYPED = ("Tensor",)
"""How the names of factories end that take no keyword of these."""


def accepting(
    module: Module, function: FunctionNode, name: str, in_project: int = 0, layers: bool = False
) -> Iterator[ast.Call]:
    """Calls of the function itself that accept the argument and are not given it. `in_project`:
    those of functions of the package, where so many calls pass it to what has the same name.
    Layers of torch too, if asked for."""
    for call in module.nodes(ast.Call, function):
        around = module.function_of(call) or module.top
        if around is not function or name in named(call):
            continue
        if may_be_given_anything(call) or (name == "device" and "pin_memory" in named(call)):
            continue
        if in_project and module.passed_in_project(call, name) < in_project:
            continue
        if in_project and not module.is_of_project(call):
            continue
        if accepts(module, call, name) or (layers and is_weighted_layer(module, call)):
            yield call


def accepting_by_name(module: Module, function: FunctionNode, name: str) -> Iterator[ast.Call]:
    """Calls of methods of which nothing but the name is known, and all methods of that name in the
    package accept the argument; other calls pass it, and these do not."""
    for call in module.nodes(ast.Call, function):
        if not isinstance(call.func, ast.Attribute) or name in named(call):
            continue
        if module.function_of(call) is not function or may_be_given_anything(call):
            continue
        if not module.passed_in_project(call, name) or module.parameters_of(call):
            continue
        found = module.namesakes_of(call)
        if found and all(_could_take(each, call, name) for each in found):
            yield call


def _could_take(each: Namesake, call: ast.Call, name: str) -> bool:
    """It has such a parameter, which no position gives, and all others that the call passes."""
    keywords = {str(given) for given in named(call)}
    if name not in each.parameters or not keywords <= set(each.parameters):
        return False
    return each.parameters.index(name) >= len(call.args)


def accepts(module: Module, call: ast.Call, name: str) -> bool:
    """The callee has a parameter of that name, which no position gives."""
    if is_maker(module, call):
        last = module.qualified(call.func).rpartition(".")[2]
        return name in _OF_FACTORIES and (name != "generator" or last in _RANDOM)
    parameters = module.parameters_of(call)
    return name in parameters and parameters.index(name) >= len(call.args)


def is_maker(module: Module, call: ast.Call) -> bool:
    func = call.func
    last = last_name(func)
    return last in MAKERS and not last.endswith(_UNTYPED) and is_of_torch(module, call)


def is_weighted_layer(module: Module, call: ast.Call) -> bool:
    """`nn.Linear(...)`: a layer that makes parameters and takes `device` and `dtype`."""
    owner, _, last = module.qualified(call.func).rpartition(".")
    return owner == "torch.nn" and last in _LAYERS


def passes_on(call: ast.Call, name: str) -> bool:
    """The call is given the variable of that name, under the same keyword or by position."""
    by_position = any(isinstance(each, ast.Name) and each.id == name for each in call.args)
    return by_position or any(
        each.arg == name and isinstance(each.value, ast.Name) and each.value.id == name
        for each in call.keywords
    )


def unpacks_with(module: Module, call: ast.Call, name: str) -> bool:
    """The call is given it by `**options`, after `options = {"device": device}`."""
    return any(
        is_one_of(value, {name})
        for keyword in call.keywords
        if keyword.arg is None
        for origin in module.value_of(keyword.value).origins
        for key, value in _entries(origin)
        if key == name
    )


def _entries(node: ast.expr) -> Iterator[tuple[object, ast.expr]]:
    """Of `{"device": device}` and `dict(device=device)`."""
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            yield getattr(key, "value", None), value
    elif isinstance(node, ast.Call) and last_name(node.func) == "dict":
        yield from ((each.arg, each.value) for each in node.keywords)


def is_read(module: Module, function: FunctionNode, name: str) -> bool:
    return any(isinstance(each.ctx, (ast.Load, ast.Del)) for each in module.uses(name, function))


def device_at_hand(module: Module, function: FunctionNode) -> str:
    """How the function can say a device: "device", "self.device", "x.device"; "" if it cannot."""
    if function is module.top:
        return "device" if _is_bound_at_the_top(module) else ""
    bound = any(isinstance(each.ctx, ast.Store) for each in module.uses("device", function))
    if bound or any(each.arg == "device" for each in parameters(function)):
        return "device"
    members = (*module.members("device", function), *module.members("_device", function))
    own = [each for each in members if module.text(each) in _OWN]
    if own:
        return module.text(min(own, key=lambda each: (each.lineno, each.col_offset)))
    found = _given_to_others(module, function) or _asked(module, function)
    if found:
        return found
    *_, file = module.ancestors(function)
    return module.once(_of_the_file, file)


def _is_bound_at_the_top(module: Module) -> bool:
    return any(
        isinstance(each.ctx, ast.Store) and module.function_of(each) is None
        for each in module.uses("device")
    )


def _of_the_file(module: Module, file: ast.AST) -> str:
    """`flair.device` of another file, or a `device` at the top of this one, where the file puts
    things more than once."""
    said = (device for _, device in devices_said(module, file))
    counts = Counter(module.text(each) for each in said if _is_of_a_file(module, each))
    [(text, count)] = counts.most_common(1) or [("", 0)]
    return text if count >= _ENOUGH_IN_FILE else ""


def _is_of_a_file(module: Module, device: ast.expr) -> bool:
    """A name that is bound at the top of a file: `device`, or `package.device`."""
    if isinstance(device, ast.Attribute):
        owner = device.value
        if not isinstance(owner, ast.Name) or not device.attr.lower().endswith("device"):
            return False
        return owner.id in module.once(_imported, module.top)
    if not isinstance(device, ast.Name) or not device.id.lower().endswith("device"):
        return False
    function = module.function_of(device)
    while function is not None:
        bound = any(isinstance(each.ctx, ast.Store) for each in module.uses(device.id, function))
        if bound or any(each.arg == device.id for each in parameters(function)):
            return False
        function = module.function_of(function)
    return True


def _imported(module: Module, _: ast.AST) -> set[str]:
    """Modules that the file imports by `import`, by the names that they have here."""
    return {
        (each.asname or each.name).partition(".")[0]
        for statement in module.nodes(ast.Import)
        for each in statement.names
    }


def _given_to_others(module: Module, function: FunctionNode) -> str:
    """What another call of the function is given as `device`."""
    for call in module.nodes(ast.Call, function):
        for each in call.keywords:
            if each.arg == "device" and not isinstance(each.value, ast.Constant):
                return module.text(each.value)
    return ""


def _asked(module: Module, function: FunctionNode) -> str:
    """`x.device` of an argument, which the function reads for something else."""
    names = {each.arg for each in parameters(function)} - {"self", "cls"}
    for node in module.members("device", function):
        if isinstance(node.value, ast.Name) and node.value.id in names:
            return module.text(node)
    return ""
