"""Calls that the runtime halves of rules give advice about."""

from __future__ import annotations

from tensortrail.findings import Site
from tensortrail.rules.timeline import Timeline


def carrier(timeline: Timeline, site: Site | None, function: str) -> Site | None:
    """The call of that function at the line, which can carry a setting; the line alone where the
    source is not known any more, None if there is no such call."""
    if site is None:
        return None
    return timeline.call(site, function) or (None if timeline.line(site) else site)
