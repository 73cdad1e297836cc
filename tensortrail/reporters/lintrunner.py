"""Lintrunner's messages: one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tensortrail.findings import Finding, Report, Severity
from tensortrail.inert import inert, inert_json
from tensortrail.reporters.content import path_from_here
from tensortrail.reporters.summary import by_hand, in_cell

_SEVERITIES = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "advice"}


def render(report: Report, *, color: bool = False, width: int = 100) -> str:
    messages = [_message(each) for each in report.findings]
    messages += [_problem(each) for each in report.problems]
    return "\n".join(inert_json(json.dumps(each)) for each in messages)


def _message(finding: Finding) -> dict[str, Any]:
    site = finding.site.in_file
    known = site.start >= 0 and site.line
    return {
        "path": inert(path_from_here(site.file)),
        "line": site.line or None,
        "char": site.column if known else None,
        "code": "TENSORTRAIL",
        "severity": _SEVERITIES[finding.severity],
        "name": f"{finding.code} {finding.name}",
        "original": None,
        "replacement": None,
        "description": inert("\n".join(_description(finding)), keep="\n"),
    }


def _description(finding: Finding) -> Iterator[str]:
    yield from (*in_cell(finding), finding.message, *by_hand(finding))
    for fix in finding.fixes[:1]:
        if fix.preview:
            yield f"{fix.description} ({fix.safety.value}):\n{fix.preview}"


def _problem(told: str) -> dict[str, Any]:
    nowhere = dict.fromkeys(("path", "line", "char", "original", "replacement"))
    said = {"name": "problem", "description": inert(told)}
    return {**nowhere, "code": "TENSORTRAIL", "severity": "warning", **said}
