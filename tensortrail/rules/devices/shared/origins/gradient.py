"""The operand is a gradient from a backward pass through what was computed before a move."""

from __future__ import annotations

from tensortrail.rules.devices.shared.origins.case import Case, Origin, advice
from tensortrail.rules.shared.history import placing
from tensortrail.rules.shared.lines import where
from tensortrail.rules.shared.operands import operands
from tensortrail.rules.timeline import Did, Event, Storage

GRADIENT = "gradient"


def origin(case: Case) -> Origin | None:
    for each in operands(case.timeline, case.event):
        if each.optimizer.get("part") == GRADIENT and each.weight is not None:
            moved = _moved(case, each.weight)
            if moved is not None and each.device != _to(moved):
                why = (
                    f"the gradient comes from a forward pass before the weight was moved to "
                    f"{_to(moved)}{where(moved)}"
                )
                change = "move the model before the forward pass, or after the optimizer's step"
                return Origin(why, fixes=(advice(change),))
    return None


def _moved(case: Case, weight: Storage) -> Event | None:
    history = placing(case.timeline.history(weight, case.event))
    return history[-1] if history and history[-1].did is Did.MOVE else None


def _to(move: Event) -> str:
    return move.storage.device if move.storage else ""
