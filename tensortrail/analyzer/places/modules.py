"""What a module gives when it is called, and a function of the project."""

from __future__ import annotations

from tensortrail.analyzer.places.called import Called
from tensortrail.analyzer.places.components import COMPONENT, computed_with
from tensortrail.analyzer.places.elements import OUTPUT
from tensortrail.analyzer.places.environment import Environment
from tensortrail.analyzer.places.evaluating import Evaluating
from tensortrail.analyzer.places.joins import member
from tensortrail.analyzer.places.operations import as_operand, combined
from tensortrail.analyzer.places.results import Callee, demands_of, result_of
from tensortrail.rules.places import UNKNOWN_HELD, Held, Place, What, Where


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


def of_module(world_of: Evaluating, called: Called, module: Held, env: Environment) -> Held:
    """A module is called: its parameters meet the arguments, or its code says what it gives."""
    if module.cls == "bare":
        world_of.meetings.meet(called.node, "loss", called.operands, env, by_element=False)
        return combined(called.operands)
    if module.cls == "leaf":
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
    elif module.cls and module.cls != "box":
        callee = world_of.world.callee_of(module.cls, "forward")
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
