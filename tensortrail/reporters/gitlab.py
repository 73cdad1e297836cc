"""GitLab's code quality report, for the widget and the lines of a merge request."""

from __future__ import annotations

from typing import Any

from tensortrail.findings import Finding, Report, Severity
from tensortrail.inert import headline
from tensortrail.reporters.content import Fingerprints, path_from_here
from tensortrail.reporters.jsontext import to_json
from tensortrail.reporters.summary import by_hand, in_cell

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.NOTE: "info"}


def render(report: Report, *, color: bool = False, width: int = 100) -> str:
    prints = Fingerprints()
    return to_json([_issue(each, prints) for each in report.findings])


def _issue(finding: Finding, prints: Fingerprints) -> dict[str, Any]:
    site = finding.site.in_file
    path = path_from_here(site.file)
    lines = {"begin": max(site.line, 1)}
    if site.end_line > site.line:
        lines["end"] = site.end_line
    told = [f"{finding.code}:", *in_cell(finding), finding.message, *by_hand(finding)]
    return {
        "description": headline(" ".join(told)),
        "check_name": f"{finding.code} {finding.name}",
        "fingerprint": prints.of(finding, path),
        "severity": _SEVERITIES[finding.severity],
        "location": {"path": path, "lines": lines},
    }
