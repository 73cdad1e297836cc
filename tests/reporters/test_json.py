"""A list of objects, one a finding."""

from __future__ import annotations

import json
import os
from dataclasses import replace

from tensortrail.findings import Edit, Setting, Site
from tensortrail.reporters import render

from .samples import finding, full_finding, report, site

PLACE = {"file": "a.py", "line": 3, "column": 5, "end_line": 3, "end_column": 16}


def test_everything_a_finding_can_say() -> None:
    assert json.loads(render("json", report(full_finding()))) == [
        {
            "code": "OFF101",
            "name": "unguarded-deallocate",
            "message": "`model` is moved whatever `offload` says",
            "severity": "error",
            "confidence": "medium",
            "location": PLACE,
            "trail": [{"file": "a.py", "line": 1, "message": "`model` comes from the caller"}],
            "fixes": [
                {
                    "description": "guard it",
                    "safety": "unsafe",
                    "edits": [
                        PLACE | {"start": 30, "end": 41, "text": "if offload:\n        park(model)"}
                    ],
                }
            ],
            "settings": [
                {
                    "library": "lib",
                    "name": "offload",
                    "value": "False",
                    "why": "keeps it in place",
                    "where": "compile(...)",
                }
            ],
            "siblings": [{"file": "a.py", "line": 9}, {"file": "a.py", "line": 12}],
            "evidence": {"guards": "none"},
        }
    ]


def test_no_findings_are_an_empty_list() -> None:
    assert json.loads(render("json", report())) == []


def test_a_setting_of_a_call_says_which_one() -> None:
    given = Setting("lib", "size", "7", "", "save", call="save", at=Site("b.py", 4), position=1)
    (found,) = json.loads(render("json", report(finding(settings=(given,)))))
    (told,) = found["settings"]
    assert (told["call"], told["at"], told["position"]) == ("save", {"file": "b.py", "line": 4}, 1)


def test_edits_are_exact_and_messages_inert() -> None:
    text = "'\x1b[0m\u202e'\t# ##[x]\r\n"
    (fix,) = full_finding().fixes
    odd = finding(message=text, fixes=(replace(fix, edits=(Edit(Site("a.py", 1), text),)),))
    shown = render("json", report(odd))
    assert shown.isascii()
    assert "##[" not in shown
    (found,) = json.loads(shown)
    assert found["fixes"][0]["edits"][0]["text"] == text
    assert found["message"] == "'\\x1b[0m\\u202e'\\x09# #\\x23[x]"


def test_a_name_that_is_no_utf8_is_spelled_out() -> None:
    """Strict parsers refuse half a surrogate pair."""
    (found,) = json.loads(render("json", report(finding(site=site(file=os.fsdecode(b"\xff.py"))))))
    assert found["location"]["file"] == "\\udcff.py"
