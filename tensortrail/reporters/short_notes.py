"""Notes in short: what is said once and what to change, then the places it is said of."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from tensortrail.findings import Confidence, Finding
from tensortrail.inert import headline, inert
from tensortrail.reporters.summary import place_of

Paint = Callable[[str, str], str]
_PLACES_SHOWN = 5
_HEADING = "Notes in short; --notes full shows their lines, trails and fixes:"
_NAMED_LINE = re.compile(r"\bline \d+")


def short_notes(notes: Sequence[Finding], paint: Paint) -> Iterator[str]:
    """The lines of the section; none without notes."""
    alike: dict[str, list[Finding]] = {}
    for each in notes:
        alike.setdefault(_of_any_line(_said(each, paint)), []).append(each)
    if alike:
        yield paint("bold", _HEADING)
    for general, group in alike.items():
        told = {_said(each, paint) for each in group}
        yield told.pop() if len(told) == 1 else general
        yield from _change(group, paint)
        for each in group[:_PLACES_SHOWN]:
            yield f"  {paint('bright_blue', '-->')} {place_of(each.site)}"
        if len(group) > _PLACES_SHOWN:
            yield f"      and {len(group) - _PLACES_SHOWN} more"


def _of_any_line(said: str) -> str:
    """Notes that name other lines, and nothing else that differs, are told together."""
    return _NAMED_LINE.sub("another line", said)


def _said(note: Finding, paint: Paint) -> str:
    head = paint("bold cyan", f"{note.severity.value}[{inert(note.code)}]")
    sure = note.confidence is Confidence.HIGH
    doubt = "" if sure else " " + paint("dim", f"({note.confidence.value} confidence)")
    return f"{head} {paint('bold', inert(note.name))}: {headline(note.message)}{doubt}"


def _change(group: Sequence[Finding], paint: Paint) -> Iterator[str]:
    """Where all of them ask for the same change."""
    changes = {headline(each.change) for each in group}
    if len(changes) == 1 and (change := changes.pop()):
        yield f"  {paint('bold green', 'fix')}: {change}"
