"""Tensors that NumPy refused in a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tensortrail.findings import Finding
from tensortrail.rules.base import Rule
from tensortrail.rules.shared.failures import errors, weight
from tensortrail.rules.shared.mends import called_before, edited
from tensortrail.rules.shared.operands import called, operands
from tensortrail.rules.timeline import Timeline


def refused_by_numpy(
    rule: Rule,
    timeline: Timeline,
    refusal: re.Pattern[str],
    said: Callable[[str, re.Match[str]], str],
    mend: str,
    advice: str,
) -> Iterator[Finding]:
    """A finding for each line; `said` words it, of the tensor's name and the refusal. With the
    call `mend` before `.numpy()` it works."""
    for events in errors(timeline, refusal):
        event = events[0]
        refused = refusal.search(str(event.facts.get("message", "")))
        assert refused is not None  # `errors` has searched for it
        severity, confidence = weight(timeline, events)
        given = operands(timeline, event)
        of = called(timeline, given[0]) if given else "the tensor"
        yield rule.finding_in_run(
            timeline,
            event,
            said(of, refused),
            severity=severity,
            confidence=confidence,
            fixes=[edited(timeline, advice, called_before(timeline, event.site, "numpy", mend))],
        )
