"""A cause that was read from the frames of the exception."""

from __future__ import annotations

from collections.abc import Sequence

from tensortrail.findings import Finding, Severity
from tensortrail.rules.shared.told_causes import CAUSE, CHANGE, WEIGHTS
from tensortrail.tracer.explaining.causes import Cause
from tensortrail.tracer.noticing.failed_operands import Failures
from tensortrail.tracer.reading.findings_of_run import findings
from tensortrail.tracer.reading.timeline import RunTimeline

_OF_STATE_DICTS = "SHD"
"""The family of what is saved and loaded."""


def told_by_frames(error: BaseException, failures: Failures | None) -> Cause | None:
    facts = failures.frames_tell(error) if failures is not None else {}
    if CAUSE not in facts:
        return None
    return Cause("told-by-frames", "frames", (), str(facts[CAUSE]), str(facts[CHANGE]))


def errors_of_weights(
    error: BaseException, failures: Failures | None, timeline: RunTimeline
) -> tuple[Finding, ...]:
    """What the run reports of the weights that the cause is about: how they were saved, for one
    that was told where they are loaded."""
    facts = failures.frames_tell(error) if failures is not None else {}
    names: Sequence[str] = facts.get(WEIGHTS, ())
    return tuple(
        each
        for each in (findings(timeline).findings if names else ())
        if each.severity is Severity.ERROR
        and each.code.startswith(_OF_STATE_DICTS)
        and any(f"`{name}`" in each.message for name in names)
    )
