"""A tensor that a function makes after the shape of an argument, or its object keeps, and combines
with it."""

from __future__ import annotations

from tensortrail.rules.devices.shared.meetings.certain_places import (
    certainly,
    excluded,
    where_given,
)
from tensortrail.rules.devices.shared.meetings.legal import is_legal
from tensortrail.rules.devices.shared.meetings.sized_like import has_its_shape
from tensortrail.rules.devices.shared.meetings.weighed import may_run_on_gpus
from tensortrail.rules.devices.shared.written_for.beforehand import is_beforehand
from tensortrail.rules.devices.shared.written_for.callers import comes_from_the_cpu
from tensortrail.rules.devices.shared.written_for.device_aware import sets_up
from tensortrail.rules.devices.shared.written_for.goes_along import is_passed_from_the_cpu
from tensortrail.rules.devices.shared.written_for.preparing import prepares
from tensortrail.rules.places import Meeting, Place, What, Where
from tensortrail.rules.view import FunctionNode, Module


def made_for_argument(
    module: Module, function: FunctionNode, meeting: Meeting
) -> tuple[Place, Place] | None:
    """`torch.zeros(len(x), 3).scatter_(1, x, 1)`, and `x * self.weights` of a plain object, with
    nothing else that says where `x` is: the place of the tensor, and that of the argument, which
    whoever calls a library may have on a GPU."""
    for odd, other in meeting.pairs:
        made, there = certainly(odd, function, Where.DEFAULT), where_given(other, function)
        if made is None or there is None or made.by is None:
            continue
        if there.given and there is other.only:
            continue
        if other.what is not What.TENSOR or there.where is not Where.OF:
            continue
        if excluded(meeting, made) or is_legal(meeting, odd):
            continue
        fits = has_its_shape(module, module.places(function), made.by, there)
        if fits or _is_kept_for_callers(module, function, made, there):
            return (made, there) if _may_be_on_a_gpu(module, function, there) else None
    return None


def _is_kept_for_callers(module: Module, function: FunctionNode, made: Place, there: Place) -> bool:
    """An object of a plain class made it before anybody knew of the argument; and neither the
    class nor its callers say that they work on the CPU."""
    name = there.subject.partition(".")[0].partition("[")[0]
    kept = bool(made.subject) and not is_beforehand(module, function)
    return kept and not comes_from_the_cpu(module, function, name)


def _may_be_on_a_gpu(module: Module, function: FunctionNode, there: Place) -> bool:
    if sets_up(function) or prepares(module, function) or not may_run_on_gpus(module, function):
        return False
    return not is_passed_from_the_cpu(module, function, there.subject)
