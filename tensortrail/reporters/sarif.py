"""SARIF 2.1.0, for code scanning and IDEs."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from tensortrail.findings import Edit, Finding, Fix, Report, RuleInfo, Severity, Site

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}
_ROOT = "ROOT"


def render(report: Report, *, color: bool = False, width: int = 100) -> str:
    used = sorted({finding.code for finding in report.findings} & report.rules.keys())
    index = {code: number for number, code in enumerate(used)}
    seen: Counter[str] = Counter()
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "tensortrail",
                "version": report.version,
                "rules": [_rule(report.rules[code]) for code in used],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(each, index, report.root, seen) for each in report.findings],
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    {"level": "warning", "message": {"text": _clean(each)}}
                    for each in report.problems
                ],
            }
        ],
    }
    if report.root:
        run["originalUriBaseIds"] = {_ROOT: {"uri": _file_uri(report.root).rstrip("/") + "/"}}
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(info: RuleInfo) -> dict[str, Any]:
    return {
        "id": info.code,
        "name": info.name,
        "shortDescription": {"text": info.summary},
        "help": {"text": info.page, "markdown": info.page},
        "defaultConfiguration": {"level": _LEVELS[info.severity]},
        "properties": {"precision": {"high": "high", "medium": "medium"}.get(
            info.confidence.value, "low"
        )},
    }  # fmt: skip


def _result(
    finding: Finding, index: dict[str, int], root: str, seen: Counter[str]
) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "level": _LEVELS[finding.severity],
        "message": {"text": _clean(_message(finding))},
        "locations": [_location(finding.site, root)],
        "partialFingerprints": {"tensortrail/v1": _fingerprint(finding, root, seen)},
        "properties": {"confidence": finding.confidence.value, **_properties(finding)},
    }
    if finding.code in index:
        result["ruleIndex"] = index[finding.code]
    if finding.trail:
        steps = [
            {"location": _location(step.site, root) | {"message": {"text": _clean(step.message)}}}
            for step in finding.trail
        ]
        last = {"location": _location(finding.site, root) | {"message": {"text": "here"}}}
        result["codeFlows"] = [{"threadFlows": [{"locations": [*steps, last]}]}]
    if finding.siblings:
        result["relatedLocations"] = [
            _location(site, root) | {"id": number, "message": {"text": "the same shape"}}
            for number, site in enumerate(finding.siblings, 1)
        ]
    fixes = [_fix(fix, root) for fix in finding.fixes if fix.edits]
    if fixes:
        result["fixes"] = fixes
    return result


def _message(finding: Finding) -> str:
    settings = [
        f"Setting: {each.library} {each.name}={each.value} ({each.why})"
        for each in finding.settings
    ]
    return "\n".join([finding.message, *settings])


def _properties(finding: Finding) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if finding.evidence:
        given["evidence"] = dict(finding.evidence)
    return given


def _location(site: Site, root: str) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": _artifact(site.file, root),
            "region": _region(site),
        }
    }


def _region(site: Site) -> dict[str, Any]:
    region: dict[str, Any] = {
        "startLine": site.line,
        "startColumn": site.column,
        "endLine": site.end_line,
        "endColumn": site.end_column,
    }
    if site.start >= 0:
        region |= {"byteOffset": site.start, "byteLength": site.end - site.start}
    if site.source:
        region["snippet"] = {"text": _clean(site.source)}
    return region


def _artifact(file: str, root: str) -> dict[str, Any]:
    absolute = os.path.abspath(file)
    base = os.path.abspath(root) if root else ""
    if base and absolute.startswith(base.rstrip(os.sep) + os.sep):
        relative = os.path.relpath(absolute, base).replace(os.sep, "/")
        return {"uri": _quoted(relative), "uriBaseId": _ROOT}
    return {"uri": _file_uri(absolute)}


def _fix(fix: Fix, root: str) -> dict[str, Any]:
    files: dict[str, list[Edit]] = {}
    for edit in fix.edits:
        files.setdefault(edit.site.file, []).append(edit)
    return {
        "description": {"text": _clean(f"{fix.description} ({fix.safety.value})")},
        "artifactChanges": [
            {
                "artifactLocation": _artifact(file, root),
                "replacements": [_replacement(edit) for edit in edits],
            }
            for file, edits in files.items()
        ],
    }


def _replacement(edit: Edit) -> dict[str, Any]:
    region = _region(edit.site)
    region.pop("snippet", None)
    return {"deletedRegion": region, "insertedContent": {"text": edit.text}}


def _fingerprint(finding: Finding, root: str, seen: Counter[str]) -> str:
    """The same for the same line wherever it moves; the n-th of several alike stays the n-th."""
    path = os.path.relpath(os.path.abspath(finding.site.file), root or ".").replace(os.sep, "/")
    source = " ".join(finding.site.source.split()) or finding.message
    key = f"{finding.code}:{path}:{source}".encode("utf-8", "replace")
    digest = hashlib.sha256(key).hexdigest()[:24]
    seen[digest] += 1
    return f"{digest}:{seen[digest]}"


def _file_uri(path: str) -> str:
    posix = PurePath(path).as_posix()
    return "file://" + _quoted(posix if posix.startswith("/") else f"/{posix}")


def _quoted(path: str) -> str:
    return quote(path.encode("utf-8", "surrogateescape"), safe="/:")


def _clean(text: str) -> str:
    """Half a surrogate pair is no text in JSON."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
