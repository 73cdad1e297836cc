"""One block for an issue: versions, operands, trail and findings, and nothing private."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tensortrail.findings import Finding
from tensortrail.inert import inert
from tensortrail.plurals import counted
from tensortrail.rules.timeline import Event
from tensortrail.tracer.exports.private import Private
from tensortrail.tracer.reading.sentences import place
from tensortrail.tracer.reading.summary import Summary
from tensortrail.tracer.reading.timeline import RunTimeline

MOST_ERRORS, MOST_FINDINGS, MOST_STEPS, LONGEST = 3, 5, 8, 600
FENCE = "```"


def paste(timeline: RunTimeline, findings: Sequence[Finding]) -> str:
    private = Private(timeline)
    lines = [private.without(inert(each)) for each in _lines(timeline, findings)]
    shown = [each.replace(FENCE, "'''")[:LONGEST] for each in lines]
    return "\n".join((f"{FENCE}text", *shown, FENCE))


def _lines(timeline: RunTimeline, findings: Sequence[Finding]) -> Iterator[str]:
    header = timeline.parts[0].header
    yield _versions(header)
    summary = Summary(timeline)
    facts = [counted(len(timeline.parts), "process"), *_devices(summary)]
    if header.get("rehearse"):
        facts.append(f"rehearsed on {header['rehearse']}")
    yield ", ".join(facts)
    for event in summary.errors[-MOST_ERRORS:]:
        yield ""
        yield from _error(timeline, event)
    ordered = sorted(findings, key=lambda each: each.worst_first)
    for finding in ordered[:MOST_FINDINGS]:
        yield ""
        yield from _finding(finding)
    if len(findings) > MOST_FINDINGS:
        yield f"and {counted(len(findings) - MOST_FINDINGS, 'finding')} more"
    if not findings:
        yield "no findings"


def _versions(header: Mapping[str, Any]) -> str:
    libraries = header.get("libraries")
    known = libraries if isinstance(libraries, dict) else {}
    versions = {
        "tensortrail": header.get("version"),
        "python": header.get("python"),
        "torch": header.get("torch"),
        **known,
    }
    shown = [f"{name} {version}" for name, version in versions.items() if version]
    return ", ".join((*shown, f"{platform.system()} {platform.machine()}"))


def _devices(summary: Summary) -> Iterator[str]:
    for use in summary.alive_by_device:
        yield use.device


def _error(timeline: RunTimeline, event: Event) -> Iterator[str]:
    facts = event.facts
    message = str(facts.get("message", "")).partition("\n")[0]
    yield f"{facts.get('type')}: {message}"
    where = f" in {event.site.function}" if event.site and event.site.function else ""
    yield f"{event.op} at {place(event.site or event.by)}{where} was given"
    operands = facts.get("operands")
    for told in operands if isinstance(operands, (list, tuple)) else ():
        if isinstance(told, Mapping):
            yield _operand(timeline, event, told)


def _operand(timeline: RunTimeline, event: Event, told: Mapping[str, Any]) -> str:
    number = told.get("storage")
    storage = timeline.storage(event.process, number) if isinstance(number, int) else None
    named = storage is not None and timeline.is_named(storage)
    name = timeline.name(storage) if storage and named else str(told.get("name") or "")
    shape = told.get("shape")
    sizes = "x".join(map(str, shape)) if isinstance(shape, (list, tuple)) else ""
    kind = f"{told.get('type') or told.get('dtype')} {sizes or 'scalar'}"
    return f"  {told.get('arg')}  {told.get('device')}  {kind}  {name}".rstrip()


def _finding(finding: Finding) -> Iterator[str]:
    yield f"{finding.severity.value} {finding.code} {place(finding.site)}  {finding.message}"
    for number, step in enumerate(finding.trail[:MOST_STEPS], 1):
        yield f"  {number}. {step.message}  {place(step.site)}"
    if len(finding.trail) > MOST_STEPS:
        yield f"  and {len(finding.trail) - MOST_STEPS} more"
    if finding.change:
        yield f"  change: {finding.change}"
