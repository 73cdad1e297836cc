"""Where code takes the device of one weight or component for that of what it computes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules import Module
from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.devices.shared.modules.weights import (
    component_of,
    is_made_for_offloading,
    is_of_weights,
    owner_of_parameters,
    reads_device,
)
from tensortrail.rules.devices.shared.named.devices_said import device_parameter, devices_said
from tensortrail.rules.devices.shared.written_for.device_of_answer import (
    is_of_answer,
    sets_own_device,
)
from tensortrail.rules.shared.functions import parameters
from tensortrail.rules.shared.given_devices import said_device
from tensortrail.rules.shared.objects import given
from tensortrail.rules.shared.operations import operations
from tensortrail.rules.shared.tensor_origin import origin_of
from tensortrail.rules.shared.who_decides import Decides
from tensortrail.rules.view import FunctionNode


def own_instead_of_given(
    module: Module, function: FunctionNode
) -> Iterator[tuple[ast.expr, ast.arg, bool]]:
    """`x.to(self.device)` in a method with a parameter for the device, and that parameter; with it
    whether the class is made for offloading and the device always given."""
    parameter = _device_given_to(module, function)
    if parameter is None:
        return
    left_out = any(each is parameter for each, _ in with_defaults(function.args))
    for call, said in devices_said(module, function):
        if module.text(said) != "self.device" or module.function_of(call) is not function:
            continue
        if not _chooses(module, call, parameter.arg):
            yield said, parameter, is_made_for_offloading(module, said) and not left_out


def _device_given_to(module: Module, method: FunctionNode) -> ast.arg | None:
    """The parameter of a method that is a device, and not that of its object or its answer."""
    cls = module.class_of(method)
    if cls is None or module.parent(method) is not cls or method.name == "__init__":
        return None
    parameter = device_parameter(module, method)
    if parameter is None or parameter not in parameters(method):
        return None
    if is_of_answer(module, method, parameter.arg) or sets_own_device(module, method):
        return None
    return parameter


def _chooses(module: Module, node: ast.AST, parameter: str) -> bool:
    """A condition on the given device, or on `self.device`, decides about this."""
    return any(guard.mentions(parameter) for guard in module.guards_of(node)) or any(
        isinstance(up, ast.IfExp) and "device" in module.text(up.test)
        for up in module.ancestors(node)
    )


def made_beside_weights(
    module: Module, function: FunctionNode
) -> Iterator[tuple[ast.expr, ast.expr, ast.AST]]:
    """What is made at the place of the weights meets what the caller gave: the place, what was
    given, and the operation."""
    cls = module.class_of(function) if reads_device(module, function) else None
    facts = module.class_facts(cls) if cls is not None else None
    if facts is None or not facts.is_module:
        return
    for operation in operations(module, function):
        origins = [origin_of(module, each) for each in operation.tensors]
        passed = next((e.node for e in origins if e.decides is Decides.GIVEN), None)
        if passed is None:
            continue
        places = [e.node for e in origins if e.decides is Decides.MOVED and e.node is not None]
        for place in places:
            if is_of_weights(module, place):
                yield place, passed, operation.node


def inputs_moved_to_weights(
    module: Module, function: FunctionNode
) -> Iterator[tuple[ast.expr, str]]:
    """`model(x.to(next(model.parameters()).device))`: that device, and the model."""
    for call in module.nodes(ast.Call, function):
        owner = module.text(call.func)
        for each in given(call):
            said = said_device(module, each) if isinstance(each, ast.Call) else None
            if said is not None and module.text(said) == f"next({owner}.parameters()).device":
                yield said, owner


def devices_of_components(module: Module, cls: ast.ClassDef) -> Iterator[tuple[ast.expr, str]]:
    """`self.vae.encode(x.to(self.vae.device))` in a class whose components may be offloaded: that
    device, and the component."""
    for call in module.nodes(ast.Call, cls):
        called = component_of(module, call)
        for said in _moved_for(module, call, called) if called else ():
            if module.text(said) in (f"{called}.device", "self.device"):
                yield said, called


def _moved_for(module: Module, call: ast.Call, called: str) -> Iterator[ast.expr]:
    """The devices of its arguments, and of tensors that the function moved to the component
    earlier."""
    for earlier in module.earlier(call, ast.Attribute):
        if (earlier.attr == "device" and module.text(earlier) == f"{called}.device") and (
            any(earlier is each for _, each in devices_said(module, module.statement_of(earlier)))
        ):
            yield earlier
    for each in given(call):
        said = said_device(module, each) if isinstance(each, ast.Call) else None
        if said is not None:
            yield said


def devices_of_first_parameters(
    module: Module, function: FunctionNode
) -> Iterator[tuple[ast.Call, ast.expr, ast.Attribute]]:
    """`next(m.parameters()).device`: the call, `m`, and the whole."""
    for call in module.calls("next", inside=function):
        owner, above = owner_of_parameters(call), module.parent(call)
        if owner is None or module.function_of(call) is not function or len(call.args) > 1:
            continue
        if isinstance(above, ast.Attribute) and above.attr == "device":
            yield call, owner, above
