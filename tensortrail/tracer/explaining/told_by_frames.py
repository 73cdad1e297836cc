"""A cause that was read from the frames of the exception."""

from __future__ import annotations

from collections.abc import Collection

from tensortrail.rules.shared.told_causes import CAUSE, CHANGE, WEIGHTS
from tensortrail.tracer.explaining.causes import Cause
from tensortrail.tracer.noticing.failed_operands import Failures


def told_by_frames(error: BaseException, failures: Failures | None) -> Cause | None:
    facts = failures.frames_tell(error) if failures is not None else {}
    if CAUSE not in facts:
        return None
    return Cause("told-by-frames", "frames", (), str(facts[CAUSE]), str(facts[CHANGE]))


def weights_told(error: BaseException, failures: Failures | None) -> Collection[str]:
    """The names of the weights that the cause is about."""
    names: Collection[str] = failures.frames_tell(error).get(WEIGHTS, ()) if failures else ()
    return names
