"""What the page tells of findings beside their words: their edits as a diff, their exceptions."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Sequence

from tensortrail.findings import Edit, Finding, Fix, Site
from tensortrail.rules.timeline import Did, Event
from tensortrail.tracer.reading.sentences import short

LARGEST = 1_000_000


def told_once(events: Sequence[Event]) -> list[Event]:
    """Without the meetings whose operation raised at the same line."""
    raised = {(each.op, _line(each.site)) for each in events if each.did is Did.ERROR}
    return [
        each
        for each in events
        if each.did is Did.ERROR or (each.op, _line(each.site)) not in raised
    ]


def finding_at(event: Event, findings: Sequence[Finding]) -> int:
    """The place of the finding that stands at the event's line; -1 if none does."""
    at = _line(event.site)
    found = (place for place, each in enumerate(findings) if _line(each.site) == at)
    return next(found, -1)


def preview(fix: Fix) -> str:
    """The edits as a unified diff; empty where they are words only."""
    files = dict.fromkeys(edit.site.file for edit in fix.edits)
    return fix.preview or "".join(line for file in files for line in _diff(file, fix.edits))


def _diff(file: str, edits: Sequence[Edit]) -> Iterator[str]:
    try:
        with open(file, "rb") as opened:
            before = opened.read(LARGEST)
    except OSError:
        return
    after = before
    inside = (each for each in edits if each.site.file == file)
    for edit in sorted(inside, key=lambda each: -each.site.start):
        after = after[: edit.site.start] + edit.text.encode() + after[edit.site.end :]
    old, new = (each.decode("utf-8", "replace").splitlines(True) for each in (before, after))
    yield from difflib.unified_diff(old, new, short(file), short(file), n=1)


def _line(site: Site | None) -> tuple[str, int]:
    return (os.path.abspath(site.file), site.line) if site else ("", 0)
