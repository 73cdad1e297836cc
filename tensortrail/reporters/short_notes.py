"""Notes in short: what is said once, then the places it is said of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tensortrail.findings import Confidence, Finding
from tensortrail.inert import headline, inert
from tensortrail.reporters.summary import place_of

Paint = Callable[[str, str], str]
_PLACES_SHOWN = 5
_HEADING = "Notes in short; --notes full shows their lines, trails and fixes:"


def short_notes(notes: Sequence[Finding], paint: Paint) -> Iterator[str]:
    """The lines of the section; none without notes."""
    alike: dict[str, list[Finding]] = {}
    for each in notes:
        alike.setdefault(_said(each, paint), []).append(each)
    if alike:
        yield paint("bold", _HEADING)
    for said, group in alike.items():
        yield said
        for each in group[:_PLACES_SHOWN]:
            yield f"  {paint('bright_blue', '-->')} {place_of(each.site)}"
        if len(group) > _PLACES_SHOWN:
            yield f"      and {len(group) - _PLACES_SHOWN} more"


def _said(note: Finding, paint: Paint) -> str:
    head = paint("bold cyan", f"{note.severity.value}[{inert(note.code)}]")
    sure = note.confidence is Confidence.HIGH
    doubt = "" if sure else " " + paint("dim", f"({note.confidence.value} confidence)")
    return f"{head} {paint('bold', inert(note.name))}: {headline(note.message)}{doubt}"
