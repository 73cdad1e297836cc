"""What the constructor of a module does with the device that it is given."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules import Module
from tensortrail.rules.devices.shared.calls.explained import is_followed_by
from tensortrail.rules.shared.annotations import DEVICE, names_type
from tensortrail.rules.shared.factories import is_factory
from tensortrail.rules.shared.given_devices import under_device
from tensortrail.rules.shared.layers import REGISTERED
from tensortrail.rules.shared.moves import MAY_PLACE
from tensortrail.rules.shared.objects import called
from tensortrail.rules.view import FunctionNode

_REGISTERS = ("register_buffer", "register_parameter")


def are_filled(module: Module, made: list[ast.Call]) -> bool:
    """Buffers that have their values, and move with the module: `torch.empty` is loaded later."""
    above = [module.parent(each) for each in made]
    return all(
        called(each) != "empty" and isinstance(up, ast.Call) and called(up) == "register_buffer"
        for each, up in zip(made, above, strict=True)
    )


def is_in_an_idle_dict(module: Module, function: FunctionNode, use: ast.Name) -> bool:
    """`factory_kwargs = {"device": device}`, which nothing is given."""
    above = module.parent(use)
    kept = module.parent(above) if isinstance(above, ast.Dict) else None
    if not isinstance(kept, ast.Assign) or not isinstance(kept.targets[0], ast.Name):
        return False
    name = kept.targets[0].id
    return not any(isinstance(each.ctx, ast.Load) for each in module.uses(name, function))


def device_given(module: Module, function: FunctionNode) -> str:
    """The device that the constructor of a module passes on, or uses for nothing; "" if none."""
    cls = module.parent(function)
    facts = module.class_facts(cls) if isinstance(cls, ast.ClassDef) else None
    if facts is None or not facts.is_module:
        return ""
    given = (*function.args.args, *function.args.kwonlyargs)
    return next((each.arg for each in given if _is_unused_device(module, function, each)), "")


def is_for_the_base(module: Module, function: FunctionNode, device: str) -> bool:
    """All that is done with it is to hand it to a base class, and the layers beside are made
    without one too: all of it is moved later."""
    uses = [each for each in module.nodes(ast.Name, function) if each.id == device]
    layers = (
        each
        for each in module.nodes(ast.Call, function)
        if (name := module.qualified(each.func)).startswith("torch.nn.")
        and name.rpartition(".")[2][:1].isupper()
        and name not in REGISTERED
    )
    return bool(uses) and all(_is_given_to_a_base(module, each) for each in uses) and any(layers)


def _is_given_to_a_base(module: Module, use: ast.Name) -> bool:
    above = module.parent(use)
    call = module.parent(above) if isinstance(above, ast.keyword) else above
    return isinstance(call, ast.Call) and called(call) == "__init__"


def _is_unused_device(module: Module, function: FunctionNode, argument: ast.arg) -> bool:
    """It is a device, by its name, its annotation or its use, and nothing is moved there."""
    uses = [each for each in module.nodes(ast.Name, function) if each.id == argument.arg]
    if not all(_is_passed_on(module, each) for each in uses):
        return False
    passed = any(isinstance(module.parent(each), ast.keyword) for each in uses)
    return argument.arg == "device" or names_type(module, argument.annotation, DEVICE) or passed


def _is_passed_on(module: Module, use: ast.Name) -> bool:
    """As `device=device` of a call, or in `{"device": device}`; nothing is moved with it."""
    above = module.parent(use)
    if isinstance(above, ast.Dict):
        return True
    if isinstance(above, ast.Call):
        return module.qualified(above.func) == "isinstance"
    if not isinstance(above, ast.keyword) or above.arg != "device":
        return False
    call = module.parent(above)
    func = call.func if isinstance(call, ast.Call) else None
    return not (isinstance(func, ast.Attribute) and func.attr in MAY_PLACE)


def kept_without_device(module: Module, function: FunctionNode) -> Iterator[ast.Call]:
    for call in module.nodes(ast.Call, function):
        if not is_factory(module, call) or module.function_of(call) is not function:
            continue
        named = {each.arg for each in call.keywords}
        if {"device", None} & named or under_device(module, call) or not _is_kept(module, call):
            continue
        if module.qualified(call.func).rpartition(".")[2][:1].isupper():
            continue
        held = module.places(function).seen.get(call)
        if held is not None and held.may_be_scalar and called(call).endswith("tensor"):
            continue  # a number may be anywhere
        if not (_is_moved_later(module, call) or is_followed_by(module, call, MAY_PLACE)):
            yield call


def _is_moved_later(module: Module, made: ast.Call) -> bool:
    """Another method asks for `self.scale.to(x.device)`."""
    assign = module.statement_of(made)
    target = assign.targets[0] if isinstance(assign, ast.Assign) else None
    if not isinstance(target, ast.Attribute):
        return False
    return any(
        isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Attribute)
        and call.func.value.attr == target.attr
        for call in module.calls(*MAY_PLACE, inside=module.class_of(made))
    )


def _is_kept(module: Module, made: ast.expr) -> bool:
    """It is an argument of what makes it a parameter or buffer, at once or by a name."""
    above = module.parent(made)
    if isinstance(above, ast.Assign) and isinstance(above.targets[0], ast.Name):
        name = above.targets[0].id
        later = (each for each in module.later(above, ast.Name) if each.id == name)
        return any(isinstance(each.ctx, ast.Load) and _is_kept(module, each) for each in later)
    if isinstance(above, ast.keyword):
        above = module.parent(above)
    if not isinstance(above, ast.Call) or above.func is made:
        return False
    by_name = isinstance(above.func, ast.Attribute) and above.func.attr in _REGISTERS
    return by_name or module.qualified(above.func) in REGISTERED
