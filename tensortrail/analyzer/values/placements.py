"""Where a `device` argument or a move puts something."""

from __future__ import annotations

import ast
from dataclasses import replace

from tensortrail.analyzer.facts import known
from tensortrail.analyzer.values.evaluating import Evaluating
from tensortrail.rules.shared.moves import MOVES
from tensortrail.rules.shared.objects import keyword
from tensortrail.rules.words import NOWHERE, UNKNOWN_VALUE, Kind, Placement


def move_target(evaluator: Evaluating, call: ast.Call, name: str) -> Placement:
    """Where `.to(...)`, `.cpu()`, `.cuda()` puts its subject; NOWHERE if only dtype changes."""
    if name in MOVES and name != "to":
        return Placement(name, call)
    if name not in ("to", "to_empty"):
        return NOWHERE
    target = keyword(call, "device") or (call.args[0] if call.args else None)
    place = placement_of_argument(evaluator, target)
    return replace(place, by=call) if place else NOWHERE


def placement_of_argument(evaluator: Evaluating, argument: ast.expr | None) -> Placement:
    """The placement a `device` argument asks for."""
    if argument is None:
        return NOWHERE
    value = evaluator.seen.get(argument, UNKNOWN_VALUE)
    if isinstance(value.constant, str) and known.DEVICE_NAME.fullmatch(value.constant):
        return Placement(value.constant.partition(":")[0], argument)
    if isinstance(argument, ast.Attribute) and argument.attr == "device":
        owner = evaluator.seen.get(argument.value, UNKNOWN_VALUE)
        return owner.placement or Placement(by=argument, same_as=owner.path)
    if value.kinds and value.is_only(Kind.DEVICE, Kind.DEVICE_STRING):
        return Placement(by=argument, same_as=value.path or ast.unparse(argument))
    return NOWHERE
