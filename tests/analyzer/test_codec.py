"""Findings as plain data and back."""

from __future__ import annotations

import json

from tensortrail.analyzer.judging.codec import from_data, to_data
from tensortrail.findings import Confidence, Finding, Setting, Severity, Site

SETTING = Setting("lib", "size", "7", "less", "save", call="save", at=Site("b.py", 4), position=1)
FINDING = Finding(
    "OFF101", "n", "m", Severity.ERROR, Confidence.HIGH, Site("a.py", 1), settings=(SETTING,)
)


def test_settings_come_back_with_their_place() -> None:
    (setting,) = from_data(json.loads(json.dumps(to_data(FINDING)))).settings
    assert setting == SETTING
    assert setting.place == "save, b.py:4"


def test_settings_written_before_they_had_a_place() -> None:
    data = to_data(FINDING)
    old = ("library", "name", "value", "why", "where")
    data["settings"] = [{name: each[name] for name in old} for each in data["settings"]]
    (setting,) = from_data(data).settings
    assert setting == Setting("lib", "size", "7", "less", "save")
    assert setting.place == "save"
