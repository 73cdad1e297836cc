"""Factory calls whose device is lost: in stand-ins of operations, by shape, passed on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.devices.shared.modules.kept_where_made import keeps_where_made
from tensortrail.rules.devices.shared.written_for.goes_along import only_sets_up
from tensortrail.rules.shared.factories import is_factory
from tensortrail.rules.shared.layers import PARAMETER
from tensortrail.rules.shared.objects import called, is_self, receiver
from tensortrail.rules.shared.tensor_methods import ONLY_TENSORS
from tensortrail.rules.shared.tensor_origin import origin_of
from tensortrail.rules.shared.who_decides import Decides
from tensortrail.rules.view import FunctionNode, Module
from tensortrail.rules.words import Kind

_LEGACY = frozenset(f"torch.{name}" for name in ("Tensor", "FloatTensor", "LongTensor"))


def overwritten_devices(module: Module, function: FunctionNode) -> Iterator[ast.Assign]:
    """`kwargs["device"] = d` over what the caller asked for, where `d` is not made of it."""
    rest = function.args.kwarg
    if rest is None or not _stands_in(module, function):
        return
    for statement in module.nodes(ast.Assign, function):
        target = statement.targets[0]
        if not (isinstance(target, ast.Subscript) and module.text(target.value) == rest.arg):
            continue
        key = target.slice
        if isinstance(key, ast.Constant) and key.value == "device":
            asked = any(guard.mentions("device", rest.arg) for guard in module.guards_of(statement))
            if not asked and rest.arg not in module.text(statement.value):
                yield statement


def _stands_in(module: Module, function: FunctionNode) -> bool:
    """It is registered for an operation of torch, whose keyword arguments it is given."""
    return any("aten." in module.text(each) for each in function.decorator_list)


def dropped_devices(module: Module, function: FunctionNode) -> Iterator[ast.Call]:
    """Factories in what stands in for an operation of torch, which has `device` in its kwargs."""
    rest = function.args.kwarg
    if rest is None or not _stands_in(module, function):
        return
    if any(each.id == rest.arg for each in module.nodes(ast.Name, function)):
        return
    for returned in module.nodes(ast.Return, function):
        for call in module.nodes(ast.Call, returned):
            if is_factory(module, call) and origin_of(module, call).decides is Decides.DEFAULT:
                yield call


def modelled_on(module: Module, function: FunctionNode) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Factories that take the whole shape of a tensor and not its device, with the tensor."""
    for call in module.nodes(ast.Call, function):
        if module.function_of(call) is not function or not is_factory(module, call):
            continue
        source = _shape_of(module, call)
        origin = origin_of(module, call)
        if source is not None and origin.decides is Decides.DEFAULT:
            value = module.value_of(source)
            if value.is_tensor and value.sure and not _goes_elsewhere(module, call):
                yield call, source


def takes_more_of(module: Module, call: ast.Call, source: ast.expr) -> bool:
    """`torch.zeros(t.shape, dtype=t.dtype)`, `torch.empty_strided(t.shape, t.stride())`: it is to
    be like `t`, and only its device is not."""
    shown = module.text(source)
    more = (*call.args[1:], *(each.value for each in call.keywords))
    reads = [each for said in more for each in ast.walk(said) if isinstance(each, ast.Attribute)]
    return any(module.text(each.value) == shown for each in reads)


def goes_to_its_owner(module: Module, made: ast.Call, source: ast.expr) -> bool:
    """`layer.step(torch.zeros(layer.state.shape))`: the object that has the tensor computes with
    what is made after it."""
    above = module.parent(made)
    taker = module.parent(above) if isinstance(above, ast.keyword) else above
    owner = receiver(taker) if isinstance(taker, ast.Call) and taker.func is not made else None
    whole = module.text(owner) if owner is not None and not is_self(owner) else ""
    return bool(whole) and module.text(source).startswith(f"{whole}.")


def _shape_of(module: Module, call: ast.Call) -> ast.expr | None:
    """`t` of `torch.empty_strided(tuple(t.shape), t.stride())` and `torch.zeros(t.size())`."""
    given = call.args[0] if call.args else None
    while isinstance(given, ast.Call) and given.args and isinstance(given.func, ast.Name):
        given = given.args[0]
    if isinstance(given, ast.Starred):
        given = given.value
    if isinstance(given, ast.Attribute) and given.attr == "shape":
        return given.value
    if isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute):
        return given.func.value if given.func.attr == "size" and not given.args else None
    return None


def _goes_elsewhere(module: Module, call: ast.Call) -> bool:
    """It is moved or taken apart at once, or given to a call that may move it."""
    return isinstance(module.parent(call), ast.Attribute)


def passed_to_modules(module: Module, function: FunctionNode) -> Iterator[ast.Call]:
    """Factories whose tensor is an argument of a module that the function was given or holds."""
    still = only_sets_up(module, function) or keeps_where_made(module, function)
    for call in module.nodes(ast.Call, function) if function.name != "_apply" else ():
        if still and module.text(call.func).startswith("self."):
            continue  # a part of the object was just made, or is never moved
        if module.function_of(call) is function and _calls_a_module(module, function, call):
            for each in call.args:
                origin = origin_of(module, each)
                made = origin.node if origin.decides is Decides.DEFAULT else None
                if isinstance(made, ast.Call) and not _are_lengths(made):
                    yield made


def _are_lengths(made: ast.Call) -> bool:
    """`torch.tensor([len(x) for x in rows])`: what packs sequences wants them on the CPU."""
    rows = made.args[0] if made.args else None
    size = rows.elt if isinstance(rows, (ast.ListComp, ast.GeneratorExp)) else None
    if isinstance(size, ast.Subscript):  # x.shape[0]
        return isinstance(size.value, ast.Attribute) and size.value.attr == "shape"
    return isinstance(size, ast.Call) and called(size) in ("len", "size")


def _calls_a_module(module: Module, function: FunctionNode, call: ast.Call) -> bool:
    func = call.func
    if isinstance(func, ast.Attribute):
        if not is_self(func.value) or function.name == "__init__":
            return False
        value = module.value_of(func)
        return value.kind is Kind.MODULE and value.sure
    given = function.args
    if not isinstance(func, ast.Name) or func.id not in [each.arg for each in given.args]:
        return False
    asked = module.parent(call)
    return isinstance(asked, ast.Attribute) and asked.attr in ONLY_TENSORS


def legacy_parameters(module: Module, function: FunctionNode) -> Iterator[ast.Call]:
    """`nn.Parameter(torch.Tensor(n))`, which `with torch.device(...)` does not reach."""
    for call in module.calls(PARAMETER, inside=function):
        made = call.args[0] if call.args else None
        if (
            isinstance(made, ast.Call)
            and module.qualified(made.func) in _LEGACY
            and made.args
            and not isinstance(made.args[0], (ast.List, ast.ListComp))
        ):
            yield made
