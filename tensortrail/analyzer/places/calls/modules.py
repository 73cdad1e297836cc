"""What a module gives when it is called, and a function of the project."""

from __future__ import annotations

import ast
from dataclasses import replace

from tensortrail.analyzer.places.calls.called import Called
from tensortrail.analyzer.places.calls.evaluating import Evaluating
from tensortrail.analyzer.places.functions.callee import Callee
from tensortrail.analyzer.places.functions.results import demands_of, result_of
from tensortrail.analyzer.places.held.elements import OUTPUT
from tensortrail.analyzer.places.held.environment import Environment
from tensortrail.analyzer.places.held.joins import member
from tensortrail.analyzer.places.held.operations import as_operand, combined, follows_a_device
from tensortrail.analyzer.places.libraries.components import COMPONENT, computed_with
from tensortrail.analyzer.places.libraries.library import names
from tensortrail.rules.places import MODEL, UNKNOWN_HELD, Held, Place, What, Where

RUNS = frozenset({"forward", "generate"})
_EXAMPLES = ("args", "example_inputs")
"""How functions that run a module call what they run it on."""


def of_callee(
    world_of: Evaluating, called: Called, callee: Callee | None, owner: Held | None = None
) -> Held | None:
    """What a function of the project gives; what meets inside of it meets here. A method of
    another object than `self` has an owner."""
    if callee is None or called.unpacks:
        return None
    named = called.named if owner is None else {**called.named, "self": owner}
    for meeting in demands_of(callee, called.node, called.args, named):
        world_of.meetings.add(meeting)
    return result_of(callee, called.node, called.args, named)


def of_moved(world_of: Evaluating, called: Called, moved: Held, env: Environment) -> Held:
    """A module of which nothing is known but where it was moved: nothing else is moved and then
    called."""
    world_of.meetings.pass_on(called.node, called.operands, env)
    _meet_what_was_moved(world_of, called, moved, env)
    return replace(UNKNOWN_HELD, places=moved.places, moved=moved.moved)


def _meet_what_was_moved(
    world_of: Evaluating, called: Called, module: Held, env: Environment
) -> None:
    """What was made without a device is given to a module that was moved to one."""
    if module.moved is not None and follows_a_device(module):
        meet_parameters(world_of, called, module, env)


def meet_parameters(world_of: Evaluating, called: Called, module: Held, env: Environment) -> None:
    """What was made without a device is given to a module whose code is not known."""
    parameters = Held(What.TENSOR, module.places, path=module.path)
    for number, each in enumerate(called.operands):
        made = all(place.where is Where.DEFAULT for place in each.places)
        if each.what is What.TENSOR and each.places and made and not each.may_be_scalar:
            world_of.meetings.meet(called.node, MODEL, [parameters, each], env, False, number)


def meet_the_given(world_of: Evaluating, called: Called, model: Held, env: Environment) -> None:
    """The same of a model that the caller has passed: the file asks it for its parameters."""
    func = called.node.func
    asked = func.value if isinstance(func, ast.Attribute) and called.last_name in RUNS else func
    of_caller = bool(model.places) and all(each.where is Where.OF for each in model.places)
    if of_caller and model.moved is None and world_of.world.is_asked_as_module(asked):
        meet_parameters(world_of, called, model, env)


def of_module(world_of: Evaluating, called: Called, module: Held, env: Environment) -> Held:
    """A module is called: its parameters meet the arguments, or its code says what it gives."""
    if module.cls == "bare":
        world_of.meetings.meet(called.node, "loss", called.operands, env, by_element=False)
        return combined(called.operands)
    if module.cls in ("leaf", "weighted"):
        for number, each in enumerate(map(as_operand, called.operands)):
            parameters = Held(What.TENSOR, module.places, path=module.path)
            if each.what is What.TENSOR:
                operands = [parameters, each]
                world_of.meetings.meet(called.node, "module", operands, env, False, number)
    elif module.cls == COMPONENT:
        parameters = Held(What.TENSOR, module.places, path=module.path)
        world_of.meetings.pass_on(called.node, called.operands, env)
        taken = computed_with(called.args, called.named, called.unpacked)
        for number, held in enumerate(taken):
            given = member(held) if held.what is What.BOX else as_operand(held)
            world_of.meetings.meet(called.node, "module", [parameters, given], env, False, number)
    elif module.cls != "box":
        callee = world_of.world.callee_of(module.cls, "forward") if module.cls else None
        if callee is None:
            _meet_what_was_moved(world_of, called, module, env)
            meet_the_given(world_of, called, module, env)
        result = of_callee(world_of, called, callee, module)
        if result is not None and (result.places or result.parts):
            return result
    if module.cls == COMPONENT and not module.places:
        return Held(What.TENSOR)
    where = next(iter(module.places), Place(Where.SELF))
    if where.where is Where.SELF:
        return Held(What.TENSOR, frozenset({Place(Where.SELF, OUTPUT)}))
    if where.where is Where.OF and module.cls != COMPONENT:
        return UNKNOWN_HELD
    return Held(What.TENSOR, module.places)


def run_by_torch(world_of: Evaluating, called: Called, env: Environment) -> Held | None:
    """What a module gives that a function of torch runs: `torch.jit.trace(net, x)`."""
    once = called.dotted in names("runs", "once")
    module = called.first
    if not once and called.dotted not in names("runs", "checkpoints"):
        return None
    if module is None or module.what is not What.MODULE:
        return UNKNOWN_HELD
    given = called.args[1:2] if once else called.args[1:]
    given += [called.named[each] for each in _EXAMPLES if each in called.named]
    result = of_module(world_of, replace(called, args=given, named={}), module, env)
    return UNKNOWN_HELD if once else result
