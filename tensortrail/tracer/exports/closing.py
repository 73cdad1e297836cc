"""The last lines of a run: what moved, what was found, and the command for the patch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensortrail.findings import Finding, Safety
from tensortrail.inert import inert
from tensortrail.tracer.exports.finding_lines import lines_of, shown
from tensortrail.tracer.exports.text import count_of, move_line
from tensortrail.tracer.reading.summary import Summary
from tensortrail.tracer.reading.timeline import RunTimeline

MOST_MOVES, MOST_FINDINGS = 3, 10


def closing(
    timeline: RunTimeline, findings: Sequence[Finding], directory: str, color: bool = False
) -> str:
    summary = Summary(timeline)
    events = count_of(sum(summary.counts.values()), "event")
    lines = [inert(f"tensortrail: {events} in {directory}")]
    lines += [f"  {inert(move_line(each))}" for each in summary.moves_by_line[:MOST_MOVES]]
    if met := summary.meetings:
        lines.append(f"  {count_of(len(met), 'place')} where tensors of different devices met")
    lines += shown(lines_of(findings), MOST_FINDINGS, color)
    lines += _still_open(timeline)
    lines += (inert(each) for each in commands(any(map(has_patch, findings)), directory))
    return "\n".join(lines) + "\n"


def commands(patch: bool, directory: str) -> Iterator[str]:
    if patch:
        yield f"  patch: tensortrail fix {directory} --unsafe-fixes --diff"
    yield f"  more: tensortrail report {directory}  (or --format html)"


def has_patch(finding: Finding) -> bool:
    """A change of the source is offered, as an edit or as an argument of a call."""
    edited = any(fix.edits and fix.safety is not Safety.DISPLAY for fix in finding.fixes)
    return edited or any(each.at is not None and each.call for each in finding.settings)


def _still_open(timeline: RunTimeline) -> Iterator[str]:
    """Ranks and other processes of which more may come."""
    labels = [each.label for each in timeline.processes if not each.part.closed]
    if labels:
        others = f" and {len(labels) - 1} more have" if labels[1:] else " has"
        yield f"  {labels[0]}{others} not ended: this is what is known so far"
