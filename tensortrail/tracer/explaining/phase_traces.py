"""What a phase of a run, a test for example, had to do with: lines and storages."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tensortrail.findings import Finding
from tensortrail.rules.timeline import Did
from tensortrail.tracer.reading.roots import line_of
from tensortrail.tracer.reading.timeline import RunTimeline


@dataclass
class Traces:
    """Lines and storages that a phase had to do with."""

    lines: set[tuple[str, int]] = field(default_factory=set)
    storages: set[tuple[str, int]] = field(default_factory=set)

    def by(self, finding: Finding) -> bool:
        if line_of(finding.site) not in self.lines:
            return False
        return not finding.storages or not self.storages.isdisjoint(finding.storages)


def traces(phase: str, timeline: RunTimeline) -> Traces:
    found = Traces()
    began = beginning(phase, timeline)
    for process in timeline.processes:
        for row in reversed(process.part.rows):
            event = process.event(row)
            if event.time < began:
                break
            found.lines |= {line_of(each) for each in (event.site, event.by) if each is not None}
            found.storages |= {each.key for each in (event.storage, event.other) if each}
    return found


def beginning(phase: str, timeline: RunTimeline) -> float:
    """When it began last; never if it did not."""
    began = [e.time for e in timeline.iterate(Did.PHASE) if e.facts.get("began") == phase]
    return max(began, default=math.inf)
