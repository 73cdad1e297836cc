"""Calls that the runtime halves of rules give advice about."""

from __future__ import annotations

import ast
import json

from tensortrail.findings import Site
from tensortrail.rules.timeline import Timeline


def carrier(timeline: Timeline, site: Site | None, function: str) -> Site | None:
    """The call of that function at the line, which can carry a setting; the line alone where the
    source is not known any more, None if there is no such call."""
    if site is None:
        return None
    return timeline.call(site, function) or (None if timeline.line(site) else site)


def gives(call: Site, name: str) -> bool:
    """Whether the call has an argument of this name, as it stands in the source."""
    try:
        shown = ast.parse(f"({call.source})", mode="eval").body
    except (SyntaxError, ValueError):
        return False
    return isinstance(shown, ast.Call) and any(each.arg == name for each in shown.keywords)


def quoted(text: object) -> str:
    """As a string of Python's, whatever a trail may hold."""
    return json.dumps(str(text))
