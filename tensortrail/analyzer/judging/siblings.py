"""After a hit: other places in the project like the flagged expression.

Fixes of real bugs covered one of four call sites, and one of five."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tensortrail.analyzer.judging.shapes import shape_of_flagged
from tensortrail.analyzer.judging.sibling_search import MOST, SiblingSearch
from tensortrail.findings import Finding, Site


def with_siblings(findings: Sequence[Finding], search: SiblingSearch) -> list[Finding]:
    """The findings, each with the sites of its shape that are no findings themselves and that its
    trail does not tell of: there it may say what is right."""
    shapes: dict[Finding, tuple[str, frozenset[bytes]]] = {}
    for finding in findings:
        shape = shape_of_flagged(finding.site.source, finding)
        if shape is not None:
            shapes[finding] = shape
    if not shapes:
        return list(findings)
    places = search.places(dict(shapes.values()))
    reported: dict[str, list[Site]] = {}
    for finding in findings:
        reported.setdefault(finding.site.file, []).append(finding.site)
    result = []
    for finding in findings:
        known = shapes[finding][0] if finding in shapes else ""
        told = [each.site for each in finding.trail if each.site is not None]
        others = [
            site
            for site in places.get(known, ())
            if not any(_is_within(site, each) for each in (*reported.get(site.file, ()), *told))
        ]
        result.append(replace(finding, siblings=tuple(others[:MOST])) if others else finding)
    return result


def _is_within(one: Site, flagged: Site) -> bool:
    first, last = (flagged.line, flagged.column), (flagged.end_line, flagged.end_column)
    return one.file == flagged.file and first <= (one.line, one.column) < last
