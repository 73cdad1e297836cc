"""Reviewdog's diagnostics, with the edits of fixes as suggestions on a pull request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensortrail.findings import Finding, Report, Severity, Site
from tensortrail.inert import inert
from tensortrail.reporters.content import path_from_here
from tensortrail.reporters.jsontext import to_json
from tensortrail.reporters.summary import by_hand, in_cell

_SEVERITIES = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.NOTE: "INFO"}


def render(report: Report, *, color: bool = False, width: int = 100) -> str:
    found = [_diagnostic(each) for each in report.findings]
    return to_json({"source": {"name": "tensortrail"}, "diagnostics": found})


def _diagnostic(finding: Finding) -> dict[str, Any]:
    site = finding.site.in_file
    location: dict[str, Any] = {"path": path_from_here(site.file)}
    if site.line:
        location["range"] = _range(site) or {"start": {"line": site.line}}
    told: dict[str, Any] = {
        "message": inert("\n".join(_message(finding)), keep="\n"),
        "location": location,
        "severity": _SEVERITIES[finding.severity],
        "code": {"value": finding.code},
    }
    if suggestions := _suggestions(finding):
        told["suggestions"] = suggestions
    return told


def _message(finding: Finding) -> Iterator[str]:
    yield from (*in_cell(finding), finding.message, *by_hand(finding))
    for fix in finding.fixes[:1]:
        if fix.edits:
            yield f"{fix.description} ({fix.safety.value})"
    for setting in finding.settings:
        yield f"setting: {setting.library} {setting.name}={setting.value} - {setting.why}"


def _suggestions(finding: Finding) -> list[dict[str, Any]]:
    """The edits of the first fix: all of them, or none."""
    edits = finding.fixes[0].edits if finding.fixes and not finding.site.cell else ()
    if any(each.site.file != finding.site.file for each in edits):
        return []
    ranges = [_range(each.site) for each in edits]
    if not all(ranges):
        return []
    return [{"range": where, "text": each.text} for where, each in zip(ranges, edits, strict=True)]


def _range(site: Site) -> dict[str, Any] | None:
    """Columns count bytes here, which the lines of the place tell; None where they are unknown."""
    lines = site.source.split("\n")
    if site.start < 0 or len(lines) <= site.end_line - site.line:
        return None
    return {
        "start": {"line": site.line, "column": _column(lines[0], site.column)},
        "end": {
            "line": site.end_line,
            "column": _column(lines[site.end_line - site.line], site.end_column),
        },
    }


def _column(line: str, column: int) -> int:
    return len(line[: column - 1].encode("utf-8", "surrogatepass")) + 1
