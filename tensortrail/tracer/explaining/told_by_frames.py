"""A cause that was read from the frames of the exception, in this process or in one it started."""

from __future__ import annotations

from torch.multiprocessing import ProcessRaisedException

from tensortrail.rules.shared.told_causes import CAUSE, CHANGE, sentence
from tensortrail.rules.timeline import Did
from tensortrail.tracer.explaining.causes import Cause
from tensortrail.tracer.noticing.failed_operands import Failures
from tensortrail.tracer.reading.timeline import RunTimeline


def told_by_frames(
    error: BaseException, failures: Failures | None, timeline: RunTimeline | None
) -> Cause | None:
    facts = failures.known if failures is not None else {}
    if isinstance(error, ProcessRaisedException) and timeline is not None:
        told = (each.facts for each in timeline.events(Did.HOOK) if CAUSE in each.facts)
        facts = next(told, facts)
    if CAUSE not in facts:
        return None
    return Cause("told-by-frames", "frames", (), sentence(facts[CAUSE]), sentence(facts[CHANGE]))
