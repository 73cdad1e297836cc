"""Callers of a function, in any file of the project, that pass what certainly lies on a device."""

from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Site
from tensortrail.rules.devices._device_aware import is_forward, is_of_module, sets_up
from tensortrail.rules.places import Held, Place, What, Where
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
    for each in module.passed_elsewhere(function, subject):
        if _is_on_a_device(each.module, each.function, each.held, depth):
            return each
    return None


def caller_step(
    module: Module, function: FunctionNode, there: Place
) -> tuple[tuple[Site, str], ...]:
    """The call in another file that has it on a device, for the trail of a finding."""
    found = None
    if there.where is Where.OF:
        found = caller_on_a_device(module, function, there.subject)
    if found is None:
        return ()
    return ((found.module.site(found.call), f"passes a `{there.subject}` that is on a device"),)


def _is_on_a_device(module: Module, caller: FunctionNode, held: Held, depth: int) -> bool:
    if held.what is not What.TENSOR or not held.places:
        return False
    return all(_is_definite(module, caller, each, depth) for each in held.places)


def _is_definite(module: Module, caller: FunctionNode, place: Place, depth: int) -> bool:
    if place.where is Where.OF:
        if is_forward(module, caller) or (is_of_module(module, caller) and not sets_up(caller)):
            return True
        return depth > 0 and bool(caller_on_a_device(module, caller, place.subject, depth - 1))
    if place.where is Where.LITERAL:
        return place.subject != "cpu" and not place.given
    if place.where is Where.DEVICE:
        return not place.subject.endswith(".device") or place.subject.startswith("self.")
    return place.where is Where.SELF and caller is not module.top and not sets_up(caller)


def callers_from_the_cpu(module: Module, function: FunctionNode, subject: str) -> Iterator[Caller]:
    """Those that pass what was made without a device, or on the CPU."""
    for each in module.passed_elsewhere(function, subject.partition(".")[0].partition("[")[0]):
        if any(_is_of_the_cpu(place) for place in each.held.places):
            yield each


def _is_of_the_cpu(place: Place) -> bool:
    return place.where in (Where.DEFAULT, Where.HOST) or place.subject == "cpu"
