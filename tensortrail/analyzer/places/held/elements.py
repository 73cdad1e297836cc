"""What one step of a loop over a value gives."""

from __future__ import annotations

from dataclasses import replace

from tensortrail.analyzer.places.held.joins import member
from tensortrail.rules.places import MAYBE_SCALAR, NUMBER, UNKNOWN_HELD, Held, What, Where

OUTPUT = "output"
"""The `subject` of what a submodule gives back."""


def is_output(held: Held) -> bool:
    return held.what is What.TENSOR and any(
        each.where is Where.SELF and each.subject == OUTPUT for each in held.places
    )


def part_of_box(box: Held) -> Held:
    """A module of a `ModuleList`: it lies where the list does."""
    of_members = box.each
    return replace(box, cls=of_members.cls if of_members is not None else "", each=None)


def element_of(held: Held) -> Held:
    if held.what is What.BOX:
        return member(held)
    if is_output(held):
        return replace(held, path="")  # a module may give a tuple
    if held.what is What.TENSOR:
        rank = held.rank - 1 if held.rank is not None and held.rank > 1 else MAYBE_SCALAR
        return replace(held, rank=rank, path="")
    if held.what is What.MODULE and held.cls == "box":
        return part_of_box(held)
    return NUMBER if held.what is What.NUMBER else UNKNOWN_HELD
