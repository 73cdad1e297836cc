"""A weight was moved through a shallow copy of its module, which has the same weights."""

from __future__ import annotations

from tensortrail.rules.devices.shared.origins.case import Case, Origin, advice, moved_to
from tensortrail.rules.shared.lines import where
from tensortrail.rules.shared.operands import called, operands
from tensortrail.rules.timeline import Did


def origin(case: Case) -> Origin | None:
    """It may be any of the operands: the others are where the program wants them."""
    for each in operands(case.timeline, case.event):
        history = case.timeline.history(each.storage, case.event) if each.storage else ()
        copy = next((event for event in history if "shallow" in event.facts), None)
        moves = [event for event in history if event.did is Did.MOVE]
        if copy is not None and moves and moves[-1].time > copy.time:
            return Origin(
                f"{called(case.timeline, each)} was moved to {moved_to(moves[-1])}"
                f"{where(moves[-1])}; a module and its copy, made by `copy.copy`{where(copy)}, "
                "share it",
                fixes=(advice(f"give the copy its own weights, `copy.deepcopy`{where(copy)}"),),
            )
    return None
