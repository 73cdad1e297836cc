"""What a phase of a run, a test for example, had to do with: lines and storages."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field

from tensortrail.findings import Finding, Site
from tensortrail.rules.timeline import Did
from tensortrail.tracer.reading.timeline import RunTimeline


@dataclass
class Traces:
    """Lines and storages that a phase had to do with."""

    lines: set[tuple[str, int]] = field(default_factory=set)
    storages: set[tuple[str, int]] = field(default_factory=set)

    def by(self, finding: Finding) -> bool:
        if _line(finding.site) not in self.lines:
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
            found.lines |= {_line(each) for each in (event.site, event.by) if each is not None}
            found.storages |= {each.key for each in (event.storage, event.other) if each}
    return found


def beginning(phase: str, timeline: RunTimeline) -> float:
    """When it began last; never if it did not."""
    began = [e.time for e in timeline.iterate(Did.PHASE) if e.facts.get("began") == phase]
    return max(began, default=math.inf)


def _line(site: Site) -> tuple[str, int]:
    return os.path.abspath(site.file), site.line
