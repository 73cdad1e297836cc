"""Workflow commands: findings as annotations on a pull request."""

from __future__ import annotations

from tensortrail.findings import Finding, Report, Severity
from tensortrail.inert import inert
from tensortrail.reporters.summary import by_hand, closing, in_cell

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render(report: Report, *, color: bool = False, width: int = 100) -> str:
    lines = [_command(finding) for finding in report.findings]
    problems = [f"::warning title=tensortrail::{_data(each)}" for each in report.problems]
    return "\n".join([*lines, *problems, *map(inert, report.notes), closing(report)])


def _command(finding: Finding) -> str:
    site = finding.site.in_file
    properties = {
        "file": site.file.replace("\\", "/"),
        **({"line": str(site.line), "endLine": str(site.end_line)} if site.line else {}),
        "title": f"{finding.code} {finding.name}",
    }
    if site.line == site.end_line and site.column < site.end_column:
        # columns over several lines are refused
        properties |= {"col": str(site.column), "endColumn": str(site.end_column)}
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    message = "\n".join([*in_cell(finding), finding.message, *by_hand(finding)])
    for setting in finding.settings:
        message += f"\nsetting: {setting.library} {setting.name}={setting.value} - {setting.why}"
    return f"::{_LEVELS[finding.severity]} {listed}::{_data(message)}"


def _data(text: str) -> str:
    return inert(text, keep="\n").replace("%", "%25").replace("\n", "%0A")


def _property(text: str) -> str:
    return inert(text).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
