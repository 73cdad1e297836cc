"""New layers that are put into a model after it was moved, and are not moved themselves."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.findings import Fix, Safety
from tensortrail.rules.devices.shared.modules.moved_then_used import moved_before, used_after, wraps
from tensortrail.rules.devices.shared.modules.new_layers import is_new_on_default
from tensortrail.rules.shared.functions import called_here, matched, parameter_names
from tensortrail.rules.shared.moves import MAY_PLACE
from tensortrail.rules.shared.objects import receiver, root_of
from tensortrail.rules.view import FunctionNode, Module

_DEEPEST = 3
"""Functions that hand a model on to the one that puts a layer into it."""


class Replaced(NamedTuple):
    made: ast.Call
    """The new layer."""
    model: str
    moved: ast.Call
    used: ast.Call
    """The call of the model."""
    put: ast.Call | None = None
    """The call of the function that puts the layer there, if it is another one."""


def replaced_after_move(module: Module) -> Iterator[Replaced]:
    for made, owner in _stored(module):
        if not is_new_on_default(module, made):
            continue
        model = module.text(owner)
        moved = moved_before(module, made, model)
        used = used_after(module, made, model) if moved is not None else None
        if moved is not None and used is not None:
            yield Replaced(made, model, moved, used)
        yield from list(_put_by_another(module, made, owner))[:1]


def wrapped_after_move(module: Module) -> Iterator[Replaced]:
    """`net = Wrapper(net)`, of a class that makes layers of its own."""
    for assign in module.nodes(ast.Assign):
        target = assign.targets[0]
        if not isinstance(target, ast.Name) or not wraps(assign.value, target.id):
            continue
        moved = moved_before(module, assign.value, target.id)
        if moved is None or not is_new_on_default(module, assign.value):
            continue
        used = used_after(module, assign.value, target.id)
        if used is not None:
            yield Replaced(assign.value, target.id, moved, used)


def _put_by_another(module: Module, made: ast.Call, owner: ast.expr) -> Iterator[Replaced]:
    """`add_adapters(model)`, a function of the file that puts new layers into what it is given."""
    function = module.function_of(made)
    parameter = _parameter_behind(module, owner, function) if function is not None else None
    if function is not None and parameter is not None:
        yield from _put_by(module, made, function, parameter, _DEEPEST)


def _put_by(
    module: Module, made: ast.Call, function: FunctionNode, parameter: str, depth: int
) -> Iterator[Replaced]:
    if any(module.calls(*MAY_PLACE, inside=function)):
        return
    for call in module.calls(function.name) if depth else ():
        around = module.function_of(call)
        if called_here(module, call) is not function or around is function:
            continue
        given_as = next((each for name, each in matched(function, call) if name == parameter), None)
        if not isinstance(given_as, ast.Name):
            continue
        model = given_as.id
        moved = moved_before(module, call, model)
        used = used_after(module, call, model) if moved is not None else None
        if moved is not None and used is not None:
            yield Replaced(made, model, moved, used, call)
        elif around is not None and model in parameter_names(around):
            yield from _put_by(module, made, around, model, depth - 1)


def _parameter_behind(module: Module, owner: ast.expr, function: FunctionNode) -> str | None:
    """The parameter that the layer is put into, or whose parts a loop goes through."""
    names = parameter_names(function)
    name = getattr(owner, "id", "")
    for loop in module.nodes(ast.For, function):
        bound = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
        over = root_of(loop.iter)
        if name in bound and isinstance(over, ast.Name):
            name = over.id
    return name if name in names else None


def _stored(module: Module) -> Iterator[tuple[ast.Call, ast.expr]]:
    """`net.fc = nn.Linear(...)`, `net.head[2] = ...`, `setattr(net, name, ...)`,
    `net.add_module(name, ...)`: the new layer and the model."""
    for assign in module.nodes(ast.Assign):
        target = assign.targets[0]
        is_part = isinstance(target, (ast.Attribute, ast.Subscript))
        owner = root_of(target) if is_part else None
        if (
            isinstance(owner, ast.Name)
            and owner.id != "self"
            and isinstance(assign.value, ast.Call)
        ):
            yield assign.value, owner
    for call in module.calls("setattr"):
        match call.args:
            case [ast.Name() as owner, _, ast.Call() as made] if owner.id != "self":
                yield made, owner
    for call in module.calls("add_module", "register_module"):
        holder, added = receiver(call), module.argument(call, 1, "module")
        owner = root_of(holder) if holder is not None else None
        if isinstance(owner, ast.Name) and owner.id != "self" and isinstance(added, ast.Call):
            yield added, owner


def moved_too(module: Module, found: Replaced) -> Fix | None:
    arguments = ", ".join(module.text(each) for each in found.moved.args)
    if found.moved.keywords:
        return None
    attr = found.moved.func.attr if isinstance(found.moved.func, ast.Attribute) else "to"
    edit = module.replace(found.made, f"{module.text(found.made)}.{attr}({arguments})")
    return module.fix("move it as the model was moved", Safety.UNSAFE, edit)
