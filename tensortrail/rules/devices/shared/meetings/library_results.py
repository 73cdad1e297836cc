"""Whether what a library returns on the CPU surely meets what lies on a device."""

from __future__ import annotations

import ast

from tensortrail.rules import Module
from tensortrail.rules.devices.shared.written_for.beforehand import is_beforehand
from tensortrail.rules.places import Held, Meeting, Place, What, Where
from tensortrail.rules.shared.workers import data_of, gives_tensors_of_a_device
from tensortrail.rules.view import FunctionNode


def is_surely_met(module: Module, meeting: Meeting, made: Place, there: Place) -> bool:
    """An operation of torch on every path, beside what was put on a device in so many words."""
    node = meeting.node
    of_torch = isinstance(node, (ast.BinOp, ast.Compare)) or (
        isinstance(node, ast.Call) and module.qualified(node.func).startswith("torch.")
    )
    moved = there.where in (Where.DEVICE, Where.LITERAL) and there.subject != "cpu"
    certain = not made.given and not is_beforehand(module, node)
    return of_torch and moved and certain


def is_loader_of_a_device(module: Module, function: FunctionNode, by: ast.AST) -> bool:
    """Its dataset moves what it gives, or was made of tensors that are on a device already."""
    if not isinstance(by, ast.Call):
        return False
    if gives_tensors_of_a_device(module, by):
        return True
    seen = module.places(function).seen
    given = (seen.get(each) for each in data_of(module, by))
    return any(each is not None and _may_be_on_a_device(each) for each in given)


def _may_be_on_a_device(held: Held) -> bool:
    """A tensor that was put there, or that a part of the object computed."""
    computed = (Where.SELF, Where.LOCAL) if held.what is What.TENSOR else ()
    return any(
        each.where in (Where.DEVICE, *computed)
        or (each.where is Where.LITERAL and each.subject != "cpu")
        for each in held.places
    )


def left_by_its_sibling(meeting: Meeting) -> Place | None:
    """The place of what was left on the CPU, if what came with it was moved to a device."""
    moved, left = meeting.left, meeting.right
    made, there = left.only, moved.only
    if made is None or there is None or made.where is not Where.HOST:
        return None
    if not isinstance(made.by, ast.Call) or not _is_asked_for_tensors(made.by):
        return None  # a batch of a DataLoader may have lengths, which stay on the CPU
    together = any(each.where is Where.HOST and each.by is made.by for each in moved.was)
    elsewhere = there.where is not Where.HOST and there.subject != "cpu"
    return made if together and elsewhere and not (made.given or there.given) else None


def _is_asked_for_tensors(call: ast.Call) -> bool:
    return any(keyword.arg == "return_tensors" for keyword in call.keywords)
