"""`tensortrail report --format lens`: what a run knows of each line, as JSON for other tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensortrail.findings import Finding
from tensortrail.reporters.json import as_object
from tensortrail.reporters.jsontext import to_json
from tensortrail.tracer.reading.lens import Fact, FileFacts, facts_of

if TYPE_CHECKING:
    from tensortrail.tracer.reading.timeline import RunTimeline


def as_lens(timeline: RunTimeline, findings: tuple[Finding, ...]) -> str:
    return to_json({
        "version": 1,
        "started": timeline.started,
        "files": [_file(each) for each in facts_of(timeline).values()],
        "findings": [as_object(each) for each in findings],
    })  # fmt: skip


def _file(facts: FileFacts) -> dict[str, Any]:
    return {
        "file": facts.file,
        "sha256": facts.digest or None,
        "changed": facts.changed or None,
        "lines": [
            {"line": line, "facts": [_fact(each) for each in told]}
            for line, told in sorted(facts.lines.items())
        ],
    }


def _fact(fact: Fact) -> dict[str, Any]:
    return {
        "did": fact.did.value,
        "count": fact.count,
        "bytes": fact.nbytes,
        "from": fact.source or None,
        "device": fact.device,
        "op": fact.op,
        "for": fact.by or None,
        "tensor": fact.tensor or None,
        "dtype": fact.dtype,
        "shape": list(fact.shape),
        "made": fact.made or None,
        "moves": fact.moves,
        "text": str(fact),
    }
