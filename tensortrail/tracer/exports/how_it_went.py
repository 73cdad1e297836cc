"""How a run went, for the head of a report: rehearsed or not, and what it failed with."""

from __future__ import annotations

from tensortrail.tracer.reading.timeline import RunTimeline
from tensortrail.tracer.trail.outcome import KILLED


def how_it_went(timeline: RunTimeline) -> list[str]:
    """`rehearsed on cuda`, `failed: ValueError (rank 1)`. That a process was killed is told among
    the problems, with the place where it was seen last."""
    return [*conditions(timeline), *failures(timeline)]


def conditions(timeline: RunTimeline) -> list[str]:
    devices = timeline.parts[0].header.get("rehearse")
    return [f"rehearsed on {devices}"] if devices else []


def failures(timeline: RunTimeline) -> list[str]:
    ended = [each for each in timeline.gone() if each.how != KILLED]
    alone = len(timeline.parts) == 1
    told = [each.how if alone else f"{each.how} ({each.process})" for each in ended[:1]]
    if ended[1:]:
        told.append(f"{len(ended) - 1} more failed after it")
    return told
