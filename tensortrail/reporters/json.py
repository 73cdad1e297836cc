"""A list of objects, one a finding, for programs."""

from __future__ import annotations

from typing import Any

from tensortrail.findings import Finding, Fix, Report, Setting, Site
from tensortrail.inert import headline
from tensortrail.reporters.jsontext import to_json


def render(report: Report, *, color: bool = False, width: int = 100) -> str:
    return to_json([as_object(each) for each in report.findings])


def as_object(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "name": finding.name,
        "message": headline(finding.message),
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "location": _place(finding.site),
        "trail": [_line(step.site) | {"message": headline(step.message)} for step in finding.trail],
        "fixes": [_fix(fix) for fix in finding.fixes],
        "settings": [setting(each) for each in finding.settings],
        "siblings": [_line(site) for site in finding.siblings],
        "evidence": dict(finding.evidence),
    }


def setting(given: Setting) -> dict[str, Any]:
    """`call`, `at` and `position` are there where the value is an argument of a known call."""
    told: dict[str, Any] = {
        name: getattr(given, name) for name in ("library", "name", "value", "why", "where")
    }
    if given.call:
        told["call"] = given.call
    if given.at is not None:
        told["at"] = _line(given.at)
    if given.position >= 0:
        told["position"] = given.position
    if given.imports:
        told["imports"] = given.imports
    return told


def _fix(fix: Fix) -> dict[str, Any]:
    edits = [
        {
            **_place(edit.site),
            "start": edit.site.start,
            "end": edit.site.end,
            "text": edit.text,
        }
        for edit in fix.edits
    ]
    return {"description": fix.description, "safety": fix.safety.value, "edits": edits}


def _place(site: Site) -> dict[str, Any]:
    return _line(site) | {
        "column": site.column,
        "end_line": site.end_line,
        "end_column": site.end_column,
    }


def _line(site: Site) -> dict[str, Any]:
    """A place in a notebook counts lines in its cell."""
    cell = {"cell": site.cell} if site.cell else {}
    return {"file": site.file, **cell, "line": site.line}
