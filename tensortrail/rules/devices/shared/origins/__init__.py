"""Why an operand lies where it does: each file knows one way, and asks the run for it."""

from __future__ import annotations

from tensortrail.rules.devices.shared.origins import (
    assigned,
    captured,
    computed,
    copied,
    copy_dropped,
    from_loader,
    gradient,
    hidden,
    kept,
    left_out,
    made,
    made_inside,
    moved,
    on_other_gpu,
    optimizer_state,
    read,
    shallow,
    tied,
    unsaved,
)
from tensortrail.rules.devices.shared.origins.case import Case, Origin

WAYS = (left_out.origin, shallow.origin, tied.origin, hidden.origin, unsaved.origin,
        gradient.origin, computed.origin, optimizer_state.origin, copied.origin, assigned.origin,
        copy_dropped.origin, from_loader.origin, made.origin, made_inside.origin, read.origin,
        moved.origin, on_other_gpu.origin, kept.origin, captured.origin)  # fmt: skip
"""The ones that tell most stand first."""


def origin_of(case: Case) -> Origin | None:
    return next((found for way in WAYS if (found := way(case)) is not None), None)


__all__ = ["Case", "Origin", "origin_of"]
