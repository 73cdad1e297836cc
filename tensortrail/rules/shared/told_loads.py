"""What a `load` of a recorded run is told: edits of its keywords."""

from __future__ import annotations

import ast

from tensortrail.findings import Edit, Site
from tensortrail.rules import Timeline
from tensortrail.rules.shared.mends import source_of
from tensortrail.rules.shared.objects import called


def load_told(
    timeline: Timeline, site: Site | None, name: str, value: str, position: int | None = None
) -> Edit | None:
    """The first `load` of that line with this keyword, in place of what it is told now."""
    tree = timeline.tree(site.file) if site else None
    for node in ast.walk(tree) if tree else ():
        if site and isinstance(node, ast.Call) and _is_load(node, site.line):
            given = [each.value for each in node.keywords if each.arg == name]
            if position is not None:
                given = given or node.args[position : position + 1]
            if given:
                return timeline.replace(site.file, given[0], value)
            first = node.args[0]
            written = source_of(timeline, site.file, first)
            return timeline.replace(site.file, first, f"{written}, {name}={value}")
    return None


def _is_load(node: ast.Call, line: int) -> bool:
    on_the_line = node.lineno <= line <= (node.end_lineno or 0)
    return called(node) == "load" and bool(node.args) and on_the_line
