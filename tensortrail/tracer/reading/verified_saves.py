"""What was found in checkpoints right after a run had written them, at the line that saved."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tensortrail.findings import Finding, Severity, Site
from tensortrail.plurals import counted
from tensortrail.rules import Event, Rule, Timeline
from tensortrail.rules.timeline import Did
from tensortrail.tracer.noticing.written_checkpoints import VERIFIED

_SHOWN = 5


class Save(NamedTuple):
    """A checkpoint that the program wrote, as the doctor judged it then."""

    path: str
    writer: str
    """`torch.save`, `save_pretrained`: what wrote it."""
    site: Site | None
    """The line that saved."""
    found: tuple[str, ...]
    """Codes of the findings."""
    problem: str
    """Why it was not judged; "" if it was."""

    @property
    def fine(self) -> bool:
        return not self.found and not self.problem


def saves(timeline: Timeline) -> Iterator[Save]:
    for event in verified_saves(timeline):
        facts = event.facts
        codes = tuple(str(each.get("code", "")) for each in facts.get("found", ()))
        path, writer = str(facts.get("path", "")), str(facts.get("writer", ""))
        yield Save(path, writer, event.site, codes, str(facts.get("problem", "")))


def verified_saves(timeline: Timeline) -> list[Event]:
    return [each for each in timeline.events(Did.HOOK) if each.op == VERIFIED]


def found_in_saves(timeline: Timeline, rules: Sequence[Rule]) -> Iterator[Finding]:
    rule_of = {rule.code: rule for rule in rules}
    for event in verified_saves(timeline):
        for each in event.facts.get("found", ()):
            if rule := rule_of.get(each.get("code", "")):
                yield _finding(timeline, event, rule, each)


def _finding(timeline: Timeline, event: Event, rule: Rule, found: Mapping[str, Any]) -> Finding:
    file = str(found["file"])
    return rule.finding_in_run(
        timeline,
        event,
        f"{os.path.basename(file)}, written here: {found['message']}",
        severity=Severity(found["severity"]),
        evidence={"file": file, "writer": str(event.facts.get("writer", "")), **found["evidence"]},
    )


def told_of_saves(timeline: Timeline) -> Iterator[str]:
    """How many saves were verified; those that were not, and why."""
    events = verified_saves(timeline)
    if not events:
        yield "no checkpoint was written that could be verified"
        return
    left_out = [each for each in events if "problem" in each.facts]
    damaged = sum(bool(each.facts.get("found")) for each in events)
    yield f"{counted(len(events) - len(left_out), 'save')} verified, {damaged} with findings"
    for event in left_out[:_SHOWN]:
        path = event.facts.get("path", "")
        yield f"not verified: {path}: {event.facts['problem']}"
    if len(left_out) > _SHOWN:
        yield f"not verified: {len(left_out) - _SHOWN} more"
