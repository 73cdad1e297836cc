"""The findings of a run that have to do with the phase that runs now, a test for example."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field

from tensortrail.findings import Finding, Severity, Site
from tensortrail.rules.timeline import Did
from tensortrail.tracer.explaining.explanation import Explanation
from tensortrail.tracer.explaining.standing_findings import MOST, RANK
from tensortrail.tracer.reading.findings_of_run import findings
from tensortrail.tracer.reading.timeline import RunTimeline


def explain_phase(phase: str, timeline: RunTimeline) -> Explanation | None:
    """What is found in it, the worst first; None if nothing."""
    touched = _touched(phase, timeline)
    found = [
        each
        for each in findings(timeline).findings
        if each.severity is not Severity.NOTE and touched.by(each)
    ]
    ordered = sorted(found, key=lambda each: (RANK[each.severity], *each.sort_key))
    return Explanation(error="", findings=tuple(ordered[:MOST])) if ordered else None


@dataclass
class _Touched:
    """Lines and storages that a phase had to do with."""

    lines: set[tuple[str, int]] = field(default_factory=set)
    storages: set[tuple[str, int]] = field(default_factory=set)

    def by(self, finding: Finding) -> bool:
        if _line(finding.site) not in self.lines:
            return False
        return not finding.storages or not self.storages.isdisjoint(finding.storages)


def _touched(phase: str, timeline: RunTimeline) -> _Touched:
    found = _Touched()
    began = _beginning(phase, timeline)
    for process in timeline.processes:
        for row in reversed(process.part.rows):
            event = process.event(row)
            if event.time < began:
                break
            found.lines |= {_line(each) for each in (event.site, event.by) if each is not None}
            found.storages |= {each.key for each in (event.storage, event.other) if each}
    return found


def _beginning(phase: str, timeline: RunTimeline) -> float:
    """When it began last; never if it did not."""
    began = [e.time for e in timeline.iterate(Did.PHASE) if e.facts.get("began") == phase]
    return max(began, default=math.inf)


def _line(site: Site) -> tuple[str, int]:
    return os.path.abspath(site.file), site.line
