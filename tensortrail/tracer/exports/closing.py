"""The last lines of a run: what moved, what was found, and the command for the patch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensortrail.findings import Finding, Safety, Severity
from tensortrail.inert import inert
from tensortrail.tracer.exports.text import count_of, move_line, place
from tensortrail.tracer.reading.summary import Summary
from tensortrail.tracer.reading.timeline import RunTimeline

MOST_MOVES, MOST_FINDINGS = 3, 10
ORDER = (Severity.ERROR, Severity.WARNING, Severity.NOTE)
STYLES = {Severity.ERROR: "31;1", Severity.WARNING: "33;1", Severity.NOTE: "36"}


def closing(
    timeline: RunTimeline, findings: Sequence[Finding], directory: str, color: bool = False
) -> str:
    summary = Summary(timeline)
    events = count_of(sum(summary.counts.values()), "event")
    lines = [inert(f"tensortrail: {events} in {directory}")]
    lines += [f"  {inert(move_line(each))}" for each in summary.moves_by_line[:MOST_MOVES]]
    if met := summary.meetings:
        lines.append(f"  {count_of(len(met), 'place')} where tensors of different devices met")
    lines += _found(findings, color)
    lines += (inert(each) for each in _commands(findings, directory))
    return "\n".join(lines) + "\n"


def _found(findings: Sequence[Finding], color: bool) -> Iterator[str]:
    """One line for each finding, the worst first."""
    if not findings:
        yield "  no findings"
        return
    ordered = sorted(findings, key=lambda each: ORDER.index(each.severity))
    for finding in ordered[:MOST_FINDINGS]:
        word = f"{finding.severity.value} {finding.code}"
        if color:
            word = f"\x1b[{STYLES[finding.severity]}m{word}\x1b[0m"
        yield f"  {word}  {inert(place(finding.site))}  {inert(finding.message)}"
    if len(findings) > MOST_FINDINGS:
        yield f"  and {count_of(len(findings) - MOST_FINDINGS, 'finding')} more"


def _commands(findings: Sequence[Finding], directory: str) -> Iterator[str]:
    if any(has_patch(each) for each in findings):
        yield f"  patch: tensortrail fix {directory} --unsafe-fixes --diff"
    yield f"  more: tensortrail report {directory}  (or --format html)"


def has_patch(finding: Finding) -> bool:
    """A change of the source is offered, as an edit or as an argument of a call."""
    edited = any(fix.edits and fix.safety is not Safety.DISPLAY for fix in finding.fixes)
    return edited or any(each.at is not None and each.call for each in finding.settings)
