"""Formats for programs, and text from inputs that must do nothing."""

from __future__ import annotations

import json
import os
import unicodedata
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sarif_pydantic import Sarif  # type: ignore[import-untyped]

from tensortrail.findings import Fix, Safety, Severity, Step
from tensortrail.reporters import FORMATS, render

from .samples import finding, full_finding, report, site

HOSTILE = "x\x1b[31m\n::error::owned\r\u202e[bold]%0A\x07\x9b"


def sarif(*arguments: Any, **options: Any) -> dict[str, Any]:
    log: dict[str, Any] = json.loads(render("sarif", report(*arguments, **options)))
    Sarif.model_validate(log)
    schema = os.environ.get("TENSORTRAIL_SARIF_SCHEMA")
    if schema:  # the official one, where there is a copy
        with open(schema, encoding="utf-8") as handle:
            jsonschema.validate(log, json.load(handle))
    return log


def test_concise() -> None:
    shown = render("concise", report(full_finding(), finding()))
    assert shown.splitlines()[:2] == [
        "a.py:3:5: OFF101 error [unsafe fix] `model` is moved whatever `offload` says",
        "a.py:3:5: OFF101 error `model` is moved whatever `offload` says",
    ]


def test_json() -> None:
    (found,) = json.loads(render("json", report(full_finding())))
    assert set(found) == {
        "code", "name", "message", "severity", "confidence", "location", "trail", "fixes",
        "settings", "siblings", "evidence",
    }  # fmt: skip
    assert found["trail"] == [
        {"file": "a.py", "line": 1, "message": "`model` comes from the caller"}
    ]
    assert found["fixes"][0]["edits"][0]["start"] == 30
    assert found["settings"][0]["value"] == "False"


def test_github() -> None:
    command = render("github", report(finding())).splitlines()[0]
    assert command == (
        "::error file=a.py,line=3,endLine=3,title=OFF101 unguarded-deallocate,col=5,endColumn=16"
        "::`model` is moved whatever `offload` says"
    )


def test_github_escapes() -> None:
    hostile = finding(message="50%\n::error::x", site=site(file="a,b:c.py"))
    command = render("github", report(hostile)).splitlines()
    assert len(command) == 2
    assert "file=a%2Cb%3Ac.py" in command[0]
    assert command[0].endswith("::50%25%0A::error::x")


def test_sarif_says_everything() -> None:
    log = sarif(full_finding())
    run = log["runs"][0]
    (result,) = run["results"]
    assert run["columnKind"] == "unicodeCodePoints"
    assert result["level"] == "error"
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["help"]["markdown"]
    assert len(result["codeFlows"][0]["threadFlows"][0]["locations"]) == 2
    assert len(result["relatedLocations"]) == 2
    change = result["fixes"][0]["artifactChanges"][0]["replacements"][0]
    assert change["deletedRegion"]["byteOffset"] == 30
    assert "Setting: lib offload=False" in result["message"]["text"]


def test_sarif_paths_are_relative_and_quoted() -> None:
    inside = finding(site=site(file=os.path.join("sub dir", "ä#.py")))
    outside = finding(site=site(file=os.path.abspath(os.path.join(os.sep, "else", "b.py"))))
    log = sarif(inside, outside, root=os.getcwd())
    first, second = (
        each["locations"][0]["physicalLocation"]["artifactLocation"]
        for each in log["runs"][0]["results"]
    )
    assert first == {"uri": "sub%20dir/%C3%A4%23.py", "uriBaseId": "ROOT"}
    assert second["uri"].startswith("file:///")
    assert log["runs"][0]["originalUriBaseIds"]["ROOT"]["uri"].endswith("/")


def test_sarif_fingerprints_follow_the_code_not_the_line() -> None:
    def prints(*lines: int) -> list[str]:
        log = sarif(*(finding(site=site(line)) for line in lines))
        return [each["partialFingerprints"]["tensortrail/v1"] for each in log["runs"][0]["results"]]

    assert prints(3) == prints(40)
    assert len(set(prints(3, 9))) == 2


def test_statistics() -> None:
    shown = render("statistics", report(finding(), finding(), full_finding()))
    assert shown.splitlines()[0].split()[:2] == ["3", "OFF101"]


@pytest.mark.parametrize("format", [*FORMATS, "statistics"])
@given(text=st.one_of(st.just(HOSTILE), st.text(max_size=40)))
def test_text_from_inputs_is_inert(format: str, text: str) -> None:
    odd = text + os.fsdecode(b"\xff")
    fix = Fix(odd, Safety.DISPLAY, (), odd)
    where = site(source=odd, file=odd or "a.py")
    found = finding(
        message=odd, site=where, trail=(Step(where, odd),), fixes=(fix,), severity=Severity.NOTE
    )
    shown = render(format, report(found, problems=(odd,)))
    shown.encode("utf-8")
    if format in ("json", "sarif"):
        assert json.loads(shown)
        return
    kinds = {unicodedata.category(each) for each in shown if each != "\n"}
    assert not kinds & {"Cc", "Cs", "Zl", "Zp"}
    assert "\u202e" not in shown
    commands = [line for line in shown.split("\n") if line.startswith("::")]
    expected = 2 if format == "github" else 0
    assert len(commands) == expected
