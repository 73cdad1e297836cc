"""Findings as plain data and back, for the cache and for other processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tensortrail.findings import (
    Confidence,
    Edit,
    Finding,
    Fix,
    Safety,
    Setting,
    Severity,
    Site,
    Step,
)


def to_data(finding: Finding) -> dict[str, Any]:
    return asdict(finding)


def from_data(data: Mapping[str, Any]) -> Finding:
    return Finding(
        code=data["code"],
        name=data["name"],
        message=data["message"],
        severity=Severity(data["severity"]),
        confidence=Confidence(data["confidence"]),
        site=Site(**data["site"]),
        trail=tuple(Step(Site(**step["site"]), step["message"]) for step in data["trail"]),
        fixes=tuple(_fix(fix) for fix in data["fixes"]),
        settings=tuple(_setting(setting) for setting in data["settings"]),
        siblings=tuple(Site(**site) for site in data["siblings"]),
        evidence=dict(data["evidence"]),
    )


def _setting(data: Mapping[str, Any]) -> Setting:
    at = data.get("at")
    return Setting(**{**data, "at": Site(**at) if at else None})


def _fix(data: Mapping[str, Any]) -> Fix:
    edits = tuple(Edit(Site(**edit["site"]), edit["text"]) for edit in data["edits"])
    return Fix(data["description"], Safety(data["safety"]), edits, data["preview"])
