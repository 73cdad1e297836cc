"""The operand is tied: one parameter of two layers, which were moved to different devices."""

from __future__ import annotations

from tensortrail.rules.devices.shared.origins.case import Case, Origin, advice
from tensortrail.rules.shared.history import placing
from tensortrail.rules.shared.lines import where
from tensortrail.rules.shared.operands import Operand, operands
from tensortrail.rules.timeline import Did, Event


def origin(case: Case) -> Origin | None:
    """Not only of the one that is probably in the wrong place: two GPUs are as good."""
    for each in operands(case.timeline, case.event):
        moves = _moves(case, each) if len(each.names) > 1 else []
        if len(moves) > 1:
            names = " and ".join(f"`{name}`" for name in each.names)
            why = (
                f"{names} are one parameter: it was moved to {_to(moves[-2])}{where(moves[-2])}, "
                f"and then to {_to(moves[-1])}{where(moves[-1])}"
            )
            return Origin(why, fixes=(advice("move the layers that share it to one device"),))
    return None


def _moves(case: Case, operand: Operand) -> list[Event]:
    """Of the parameter, where the last two went to different devices."""
    if operand.storage is None:
        return []
    history = placing(case.timeline.history(operand.storage, case.event))
    moves = [each for each in history if each.did is Did.MOVE]
    return moves if len({_to(each) for each in moves[-2:]} - {"cpu", "meta"}) == 2 else []


def _to(move: Event) -> str:
    return move.storage.device if move.storage else ""
