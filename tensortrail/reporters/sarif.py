"""SARIF 2.1.0, for code scanning and IDEs."""

from __future__ import annotations

import re
from typing import Any

from tensortrail.findings import Finding, Report, RuleInfo, Setting, Severity
from tensortrail.inert import inert
from tensortrail.reporters.content import Fingerprints
from tensortrail.reporters.jsontext import to_json
from tensortrail.reporters.sarif_places import ROOT, Places, folder_uri
from tensortrail.reporters.summary import by_hand, in_cell

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
LONGEST_DESCRIPTION = 1024
"""Characters that code scanning takes."""
_SENTENCE_ENDS = re.compile(r"[.!?](?=\s|$)")
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def render(report: Report, *, color: bool = False, width: int = 100) -> str:
    used = sorted({finding.code for finding in report.findings} & report.rules.keys())
    index = {code: number for number, code in enumerate(used)}
    places = Places(report.root)
    prints = Fingerprints()
    driver = {
        "name": "tensortrail",
        "version": report.version,
        "rules": [_rule(report.rules[code]) for code in used],
    }
    run: dict[str, Any] = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(each, index, places, prints) for each in report.findings],
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    {"level": level, "message": _message(each)}
                    for level, told in (("warning", report.problems), ("note", report.notes))
                    for each in told
                ],
            }
        ],
    }
    if report.root:
        run["originalUriBaseIds"] = {ROOT: {"uri": folder_uri(report.root)}}
    return to_json({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(info: RuleInfo) -> dict[str, Any]:
    return {
        "id": info.code,
        "name": info.name,
        "shortDescription": {"text": info.summary},
        "fullDescription": {"text": whole_sentences(described(info), LONGEST_DESCRIPTION)},
        "help": {"text": info.page, "markdown": info.page},
        "defaultConfiguration": {"level": _LEVELS[info.severity]},
        "properties": {"precision": info.confidence.value},
    }


def described(info: RuleInfo) -> str:
    """What the rule does, as its page says: code scanning refuses a rule without it."""
    _, _, section = info.page.partition("\n## What it does\n")
    return section.partition("\n## ")[0].strip() or info.summary


def whole_sentences(text: str, most: int) -> str:
    """As many as there is room for; of one sentence that is too long, its first words."""
    if len(text) <= most:
        return text
    ends = [each.start() + 1 for each in _SENTENCE_ENDS.finditer(text) if each.start() < most]
    return text[: ends[-1]] if ends else f"{text[: most - 3].rpartition(' ')[0]}..."


def _result(
    finding: Finding, index: dict[str, int], places: Places, prints: Fingerprints
) -> dict[str, Any]:
    file = places.artifact(finding.site.file)["uri"]
    settings = [f"Setting: {each}" for each in _settings(finding)]
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "level": _LEVELS[finding.severity],
        "message": _message(
            "\n".join([*in_cell(finding), finding.message, *by_hand(finding), *settings])
        ),
        "locations": [places.location(finding.site)],
        "partialFingerprints": {"tensortrail/v1": prints.of(finding, file)},
        "properties": _properties(finding, places),
    }
    if finding.code in index:
        result["ruleIndex"] = index[finding.code]
    more = {
        "codeFlows": _flows(finding, places),
        "relatedLocations": _siblings(finding, places),
        "fixes": _fixes(finding, places),
    }
    return result | {name: rows for name, rows in more.items() if rows}


def _flows(finding: Finding, places: Places) -> list[dict[str, Any]]:
    """The trail, which ends at the finding."""
    if not finding.trail:
        return []
    steps = [
        {"location": places.location(step.site) | {"message": _message(step.message)}}
        for step in finding.trail
    ]
    last = {"location": places.location(finding.site) | {"message": _message("here")}}
    return [{"threadFlows": [{"locations": [*steps, last]}]}]


def _siblings(finding: Finding, places: Places) -> list[dict[str, Any]]:
    return [
        places.location(site) | {"id": number, "message": _message("the same pattern")}
        for number, site in enumerate(finding.siblings, 1)
    ]


def _fixes(finding: Finding, places: Places) -> list[dict[str, Any]]:
    return [
        {
            "description": _message(f"{fix.description} ({fix.safety.value})"),
            "artifactChanges": places.changes(fix.edits),
        }
        for fix in finding.fixes
        if fix.edits and not finding.site.cell  # a cell's code is escaped in the file
    ]


def _message(text: str) -> dict[str, str]:
    """Plain text; `[0](x)` in quoted code would be read as a link."""
    return {"text": inert(text, keep="\n").replace("](", "] (")}


def _settings(finding: Finding) -> list[str]:
    return [f"{each.library} {each.name}={each.value} ({each.why})" for each in finding.settings]


def _setting(setting: Setting, places: Places) -> dict[str, Any]:
    told: dict[str, Any] = {
        name: getattr(setting, name) for name in ("library", "name", "value", "why", "where")
    }
    if setting.at is not None:
        told["at"] = places.location(setting.at)
    return told


def _properties(finding: Finding, places: Places) -> dict[str, Any]:
    given: dict[str, Any] = {"confidence": finding.confidence.value}
    if finding.settings:
        given["settings"] = [_setting(each, places) for each in finding.settings]
    if finding.evidence:
        given["evidence"] = dict(finding.evidence)
    return given
