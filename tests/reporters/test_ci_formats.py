"""The formats of CI services, held against what their readers ask for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from tensortrail.findings import Edit, Finding, Severity, Site
from tensortrail.reporters import render
from tests.reporters.samples import finding, full_finding, report, site

GITLAB = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "check_name": {"type": "string"},
            "fingerprint": {"type": "string"},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "not": {"pattern": "^\\./"}},
                    "lines": {
                        "type": "object",
                        "required": ["begin"],
                        "properties": {"begin": {"type": "integer", "minimum": 1}},
                    },
                },
            },
        },
    },
}
"""https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format, in other words."""

_POSITION = {
    "type": "object",
    "required": ["line"],
    "properties": {"line": {"type": "integer", "minimum": 1}, "column": {"type": "integer"}},
}
_RANGE = {
    "type": "object",
    "required": ["start"],
    "properties": {"start": _POSITION, "end": _POSITION},
}
RDJSON = {
    "type": "object",
    "required": ["source", "diagnostics"],
    "properties": {
        "source": {"type": "object", "required": ["name"]},
        "diagnostics": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["message", "location", "severity", "code"],
                "properties": {
                    "message": {"type": "string"},
                    "severity": {"enum": ["ERROR", "WARNING", "INFO"]},
                    "code": {"type": "object", "properties": {"value": {"type": "string"}}},
                    "location": {
                        "type": "object",
                        "required": ["path"],
                        "properties": {"path": {"type": "string"}, "range": _RANGE},
                    },
                    "suggestions": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["range", "text"],
                            "properties": {"range": _RANGE, "text": {"type": "string"}},
                        },
                    },
                },
            },
        },
    },
}
"""reviewdog's proto/rdf/reviewdog.proto (DiagnosticResult), in other words."""
OFFICIAL = "TENSORTRAIL_RDJSON_SCHEMA"
"""Environment variable: a copy of its jsonschema/DiagnosticResult.json, to be held against too."""
IN_A_CELL = replace(
    finding(), site=replace(site(), file="nb.ipynb", cell=2, file_line=40, file_end_line=40)
)
ODD = (finding(), full_finding(), IN_A_CELL, finding(site=Site("model.bin", 0, start=7, end=9)))


def gitlab(*findings: Finding) -> list[dict[str, Any]]:
    issues: list[dict[str, Any]] = json.loads(render("gitlab", report(*findings)))
    jsonschema.validate(issues, GITLAB)
    return issues


def rdjson(*findings: Finding) -> list[dict[str, Any]]:
    result: dict[str, Any] = json.loads(render("rdjson", report(*findings)))
    jsonschema.validate(result, RDJSON)
    if OFFICIAL in os.environ:
        schema = json.loads(Path(os.environ[OFFICIAL]).read_text(encoding="utf-8"))
        jsonschema.Draft4Validator(schema).validate(result)
    found: list[dict[str, Any]] = result["diagnostics"]
    return found


def test_gitlab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plain, _, cell, stored = gitlab(*ODD)
    assert plain["check_name"] == "OFF101 unguarded-deallocate"
    assert plain["severity"] == "major"
    assert plain["location"] == {"path": "a.py", "lines": {"begin": 3}}
    assert cell["location"] == {"path": "nb.ipynb", "lines": {"begin": 40}}
    assert "cell 2, line 3: " in cell["description"]
    assert stored["location"]["lines"] == {"begin": 1}
    below = finding(site=site(file=str(tmp_path / "src" / "a.py")))
    assert gitlab(below)[0]["location"]["path"] == "src/a.py"
    assert gitlab() == []


def test_gitlab_keeps_an_issue_where_lines_move_and_tells_copies_apart() -> None:
    def prints(*findings: Finding) -> list[str]:
        return [each["fingerprint"] for each in gitlab(*findings)]

    assert prints(finding(site=site(3))) == prints(finding(site=site(40)))
    assert len(set(prints(finding(site=site(3)), finding(site=site(9))))) == 2


def test_rdjson_counts_columns_in_bytes() -> None:
    line = "    'ä𝄞'; park(m)"
    (found,) = rdjson(finding(site=Site("a.py", 3, 11, 3, 18, 30, 40, "", line)))
    assert found["location"]["range"] == {
        "start": {"line": 3, "column": 15},
        "end": {"line": 3, "column": 22},
    }
    assert line.encode()[14:21] == b"park(m)"


def test_rdjson_suggests_what_the_fix_would_write() -> None:
    (found,) = rdjson(full_finding())
    assert found["suggestions"] == [
        {
            "range": {"start": {"line": 3, "column": 5}, "end": {"line": 3, "column": 16}},
            "text": "if offload:\n        park(model)",
        }
    ]
    assert "guard it (unsafe)" in found["message"]
    (fix,) = full_finding().fixes
    elsewhere = Edit(site(file="b.py"), "pass")
    both = replace(fix, edits=(*fix.edits, elsewhere))
    assert "suggestions" not in rdjson(finding(fixes=(both,)))[0], "half a fix is none"
    _, _, cell, stored = rdjson(*ODD)
    assert cell["location"]["range"] == {"start": {"line": 40}}
    assert "range" not in stored["location"]


def test_junit() -> None:
    top = ElementTree.fromstring(render("junit", report(*ODD)))
    assert (top.get("tests"), top.get("failures")) == ("4", "4")
    assert [each.get("name") for each in top] == ["a.py", "nb.ipynb", "model.bin"]
    cases = list(top.iter("testcase"))
    assert [each.get("name") for each in cases][::2] == [
        "OFF101 unguarded-deallocate at a.py:3:5",
        "OFF101 unguarded-deallocate at nb.ipynb:cell 2:3:5",
    ]
    (failure,) = cases[1]
    assert failure.get("message") == "`model` is moved whatever `offload` says"
    assert "a.py:1:7: `model` comes from the caller" in str(failure.text)
    clean = ElementTree.fromstring(render("junit", report()))
    assert (clean.get("tests"), clean.get("failures")) == ("1", "0")
    assert [each.get("name") for each in clean.iter("testcase")] == ["7 files checked"]


def test_a_reader_of_junit_takes_it(tmp_path: Path) -> None:
    junitparser = pytest.importorskip("junitparser")
    file = tmp_path / "report.xml"
    file.write_text(render("junit", report(*ODD)), encoding="utf-8")
    suites = junitparser.JUnitXml.fromfile(str(file))
    assert sum(len(suite) for suite in suites) == 4
    assert all(
        isinstance(each, junitparser.Failure) for s in suites for c in s for each in c.result
    )


def test_lintrunner_messages() -> None:
    text = render("lintrunner", report(*ODD, problems=("sub: cannot be listed",)))
    plain, full, cell, stored, problem = map(json.loads, text.splitlines())
    assert (plain["path"], plain["line"], plain["char"]) == ("a.py", 3, 5)
    assert (plain["severity"], problem["severity"]) == ("error", "warning")
    assert "guard it (unsafe):\n@@ -3 +3,2 @@" in full["description"]
    assert (cell["line"], cell["char"], stored["line"]) == (40, None, None)
    assert problem["path"] is None
    assert render("lintrunner", report()) == ""


def test_lintrunner_itself_shows_them(tmp_path: Path) -> None:
    try:
        files = distribution("lintrunner").files or ()
    except PackageNotFoundError:
        pytest.skip("lintrunner is not installed")
    (program,) = (each.locate() for each in files if each.name == "lintrunner")
    (tmp_path / "bad.py").write_text("def f(t):\n    return t.weight.device == 'meta'\n")
    (tmp_path / ".lintrunner.toml").write_text(
        "[[linter]]\ncode = 'TENSORTRAIL'\ninclude_patterns = ['**/*.py']\ncommand = "
        + json.dumps([
            sys.executable, "-m", "tensortrail", "check", "--output-format", "lintrunner",
            "--exit-zero", "--allow-empty", "--files-from", "{{PATHSFILE}}",
        ])
    )  # fmt: skip
    for command in (["git", "init", "-q"], ["git", "add", "."]):
        subprocess.run(command, cwd=tmp_path, check=True)
    shown = subprocess.run(
        [str(program), "--output", "json", "bad.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    told = json.loads(shown.stdout.splitlines()[0])
    assert (told["name"], told["line"], told["char"]) == ("DEV501 device-eq-str", 2, 12)


def test_markdown_is_a_table_that_quoted_code_cannot_break() -> None:
    worst = finding(message="`a | b` and <img src=x> [link](http://x) @someone #1 | *b*")
    note = replace(finding(site=site(9)), severity=Severity.NOTE)
    lines = render("markdown", report(note, worst)).splitlines()
    assert lines[0] == "**tensortrail**: Found 2 findings (1 error, 1 note) in 7 files."
    assert lines[4].startswith("| error | a.py:3:5 | **OFF101 unguarded-deallocate**: ")
    shown = "`a \\| b` and \\<img src=x\\> \\[link\\](http://x) \\@someone \\#1 \\| \\*b\\*"
    assert shown in lines[4]
    assert lines[5].startswith("| note | a.py:9:5 |")
    many = [finding(site=site(n)) for n in range(1, 300)]
    assert render("markdown", report(*many)).splitlines()[-1] == "and 99 more"
    assert render("markdown", report()) == "**tensortrail**: No findings: 7 files checked."
