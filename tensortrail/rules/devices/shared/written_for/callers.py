"""Callers of a function, in any file of the project, that pass what certainly lies on a device."""

from __future__ import annotations

from tensortrail.findings import Site
from tensortrail.rules.devices.shared.written_for.device_aware import (
    is_forward,
    is_of_module,
    sets_up,
)
from tensortrail.rules.places import INDEX, Held, Place, What, Where
from tensortrail.rules.view import Caller, FunctionNode, Module

_DEPTH = 2
"""Functions that a tensor is handed through."""


def caller_on_a_device(
    module: Module, function: FunctionNode, subject: str, depth: int = _DEPTH
) -> Caller | None:
    """The first caller whose argument lies where parameters, a named device or the arguments of
    a module's methods do; of a part of an argument nothing is said."""
    if not subject.isidentifier():
        return None
    for name in (subject, *sorted(_taken_with(module, function, subject))):
        for each in module.passed_elsewhere(function, name):
            if _is_on_a_device(each.module, each.function, each.held, depth):
                return each
    return None


def _taken_with(module: Module, function: FunctionNode, subject: str) -> set[str]:
    """The arguments that an operation takes together with it: all of them lie on one device."""
    found: set[str] = set()
    for meeting in module.places(function).meetings:
        sides = (meeting.left, meeting.right)
        places = [each.only for each in sides if each.what is What.TENSOR]
        names = {each.subject for each in places if each is not None and each.where is Where.OF}
        legal = meeting.operation == INDEX or any(each.may_be_scalar for each in sides)
        if subject in names and not legal:
            found |= names - {subject}
    return {each for each in found if each.isidentifier()}


def caller_step(
    module: Module, function: FunctionNode, there: Place
) -> tuple[tuple[Site, str], ...]:
    """The call in another file that has it on a device, for the trail of a finding."""
    found = None
    if there.where is Where.OF:
        found = caller_on_a_device(module, function, there.subject)
    if found is None:
        return ()
    return ((found.module.site(found.call), "called with tensors on a device"),)


def _is_on_a_device(module: Module, caller: FunctionNode, held: Held, depth: int) -> bool:
    """On some path it is, and on none it is on the CPU, as far as is known. The function that is
    called takes it for a tensor, so that is not asked."""
    taken = held.what in (What.TENSOR, What.UNKNOWN)
    if not taken or any(map(_is_of_the_cpu, held.places)):
        return False
    return any(_is_definite(module, caller, each, depth) for each in held.in_order)


def _is_definite(module: Module, caller: FunctionNode, place: Place, depth: int) -> bool:
    if place.where is Where.OF:
        if is_forward(module, caller) or (is_of_module(module, caller) and not sets_up(caller)):
            return True
        return depth > 0 and bool(caller_on_a_device(module, caller, place.subject, depth - 1))
    if place.where is Where.LITERAL:
        return place.subject != "cpu"
    if place.where is Where.DEVICE:
        return not place.subject.endswith(".device") or place.subject.startswith("self.")
    return place.where is Where.SELF and caller is not module.top and not sets_up(caller)


def _is_of_the_cpu(place: Place) -> bool:
    return place.where in (Where.DEFAULT, Where.HOST) or place.subject == "cpu"


def passed_by_all(module: Module, function: FunctionNode, name: str) -> list[Held]:
    """What callers of the function pass for the argument, in its file and in others."""
    here = [each for _, each in module.passed(function, name)]
    return here + [each.held for each in module.passed_elsewhere(function, name)]


def comes_from_the_cpu(module: Module, function: FunctionNode, name: str) -> bool:
    """Somebody calls the function, and all callers pass for the argument what lies on the CPU."""
    held = passed_by_all(module, function, name)
    return bool(held) and all(
        bool(each.places) and all(map(_is_of_the_cpu, each.places)) for each in held
    )


def is_brought_to_the_gpu(module: Module, function: FunctionNode, there: Place) -> bool:
    """All callers of the function are in this file, and each has put the argument on the current
    GPU."""
    if there.where is not Where.OF or module.passed_elsewhere(function, there.subject):
        return False
    held = [each for _, each in module.passed(function, there.subject)]
    places = [at for each in held for at in each.places]
    known = bool(held) and all(each.places for each in held)
    return known and all(at.where is Where.LITERAL and at.subject == "cuda" for at in places)
