"""SARIF 2.1.0, held against a model of the standard, and its schema where there is a copy."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import jsonschema
import pytest
from sarif_pydantic import Sarif  # type: ignore[import-untyped]

from tensortrail.cli import main
from tensortrail.findings import Edit, Finding, Setting, Site
from tensortrail.reporters import render, sarif
from tensortrail.rules import all_rules

from .samples import finding, full_finding, report, site

OFFICIAL = "TENSORTRAIL_SARIF_SCHEMA"
"""Environment variable: a copy of the official schema, to be held against as well."""


def validate(log: dict[str, Any]) -> None:
    Sarif.model_validate(log)
    schema = os.environ.get(OFFICIAL)
    if schema is not None:
        jsonschema.Draft4Validator(json.loads(Path(schema).read_text(encoding="utf-8"))).validate(
            log
        )


def run_of(*findings: Finding, problems: tuple[str, ...] = (), root: str = "") -> dict[str, Any]:
    log = json.loads(render("sarif", report(*findings, problems=problems, root=root)))
    validate(log)
    run: dict[str, Any] = log["runs"][0]
    return run


def artifact(file: str, root: str) -> dict[str, str]:
    (result,) = run_of(finding(site=site(file=file)), root=root)["results"]
    found: dict[str, str] = result["locations"][0]["physicalLocation"]["artifactLocation"]
    return found


def test_what_is_wrong_is_refused() -> None:
    with pytest.raises(ValueError, match="level"):
        validate({"version": "2.1.0", "runs": [{"tool": {}, "results": [{"level": "bad"}]}]})


def test_a_run_without_findings() -> None:
    run = run_of(problems=("sub: cannot be listed",))
    assert run["results"] == []
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["message"]["text"] == "sub: cannot be listed"


def test_rules_and_levels() -> None:
    run = run_of(full_finding())
    (result,) = run["results"]
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert (rule["id"], rule["name"]) == ("OFF101", "unguarded-deallocate")
    assert rule["fullDescription"] == {"text": "The caller's module is moved."}
    assert rule["help"]["markdown"] == "# unguarded-deallocate (OFF101)\n"
    assert rule["defaultConfiguration"] == {"level": "error"}
    assert result["level"] == "error"
    assert result["properties"]["confidence"] == "medium"
    assert run["columnKind"] == "unicodeCodePoints"


def test_a_rule_is_described_by_its_page() -> None:
    info = all_rules()["OFF101"].info()
    log = json.loads(sarif.render(replace(report(full_finding()), rules={"OFF101": info})))
    validate(log)
    (rule,) = log["runs"][0]["tool"]["driver"]["rules"]
    told = rule["fullDescription"]["text"]
    assert told.startswith("In code, reports:\n\n- `deallocate_module(x)`")
    assert told.endswith("although the setting says not to.")


def test_a_long_description_ends_with_a_sentence_and_the_help_is_whole() -> None:
    infos = [each.info() for each in all_rules().values()]
    long = [each for each in infos if len(sarif.described(each)) > sarif.LONGEST_DESCRIPTION]
    assert long
    for info in long:
        finding = replace(full_finding(), code=info.code)
        log = json.loads(sarif.render(replace(report(finding), rules={info.code: info})))
        (rule,) = log["runs"][0]["tool"]["driver"]["rules"]
        told = rule["fullDescription"]["text"]
        assert len(told) <= sarif.LONGEST_DESCRIPTION
        assert told.endswith(".")
        assert sarif.described(info).startswith(told)
        assert rule["help"] == {"text": info.page, "markdown": info.page}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two.", "One. Two."),
        ("It is `x.y`. The second is long.", "It is `x.y`."),
        ("One that is far too long to be told", "One that..."),
    ],
)
def test_whole_sentences(text: str, expected: str) -> None:
    assert sarif.whole_sentences(text, 14) == expected


@pytest.mark.complete
def test_what_code_scanning_asks_for(tmp_path: Path) -> None:
    """By the validator of SARIF's makers: npm install @microsoft/sarif-multitool."""
    validator = shutil.which("sarif-multitool")
    if validator is None:
        pytest.skip("sarif-multitool is not on PATH")
    examples = str(Path(__file__).parents[2] / "examples")
    check = ["check", examples, "--output-format", "sarif", "--output-file"]
    assert main([*check, str(tmp_path / "found.sarif"), "--exit-zero", "--no-cache"]) == 0
    command = [validator, "validate", "found.sarif", "--rule-kind", "Sarif;Ghas"]
    env = {**os.environ, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert "Analysis completed successfully" in done.stdout
    assert " error " not in done.stdout


def test_a_rule_nobody_describes() -> None:
    (result,) = run_of(replace(finding(), code="XYZ1"))["results"]
    assert result["ruleId"] == "XYZ1"
    assert "ruleIndex" not in result


def test_trail_siblings_and_settings() -> None:
    (result,) = run_of(full_finding())["results"]
    steps = result["codeFlows"][0]["threadFlows"][0]["locations"]
    lines = [each["location"]["physicalLocation"]["region"]["startLine"] for each in steps]
    assert lines == [1, 3]
    assert steps[0]["location"]["message"]["text"] == "`model` comes from the caller"
    assert [each["id"] for each in result["relatedLocations"]] == [1, 2]
    assert "Setting: lib offload=False (keeps it in place)" in result["message"]["text"]
    assert result["properties"]["settings"][0]["where"] == "compile(...)"
    assert result["properties"]["evidence"] == {"guards": "none"}


def test_a_setting_of_a_call_has_a_location() -> None:
    given = Setting("lib", "size", "7", "", "save", call="save", at=Site("b.py", 4))
    (result,) = run_of(finding(settings=(given,)))["results"]
    (told,) = result["properties"]["settings"]
    assert told["at"]["physicalLocation"]["region"]["startLine"] == 4
    assert told["at"]["physicalLocation"]["artifactLocation"]["uri"].endswith("b.py")


def test_fixes_say_what_goes_and_what_comes() -> None:
    (result,) = run_of(full_finding())["results"]
    (fix,) = result["fixes"]
    assert fix["description"]["text"] == "guard it (unsafe)"
    (change,) = fix["artifactChanges"]
    assert change["artifactLocation"]["uri"].endswith("a.py")
    assert change["replacements"] == [
        {
            "deletedRegion": {
                "startLine": 3,
                "startColumn": 5,
                "endLine": 3,
                "endColumn": 16,
                "byteOffset": 30,
                "byteLength": 11,
            },
            "insertedContent": {"text": "if offload:\n        park(model)"},
        }
    ]


def test_one_change_for_each_file() -> None:
    edits = tuple(Edit(site(file=file), "pass") for file in ("a.py", "b.py", "a.py"))
    (fix,) = full_finding().fixes
    (result,) = run_of(finding(fixes=(replace(fix, edits=edits),)))["results"]
    changes = result["fixes"][0]["artifactChanges"]
    assert [len(each["replacements"]) for each in changes] == [2, 1]


def test_the_snippet_is_what_is_flagged_its_context_the_lines() -> None:
    where = Site("a.py", 3, 5, 4, 4, 10, 20, "", "x = park(\n   m)  # c")
    (result,) = run_of(finding(site=where))["results"]
    physical = result["locations"][0]["physicalLocation"]
    assert physical["region"]["snippet"]["text"] == "park(\n   "
    assert physical["contextRegion"]["snippet"]["text"] == where.source


def test_only_the_line_where_no_more_is_known() -> None:
    (result,) = run_of(finding(site=Site("a.py", 3)))["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 3}


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        (os.path.join("sub dir", "ä#.py"), "sub%20dir/%C3%A4%23.py"),
        ("a:b?.py", "a%3Ab%3F.py"),
        ("100%.py", "100%25.py"),
        (os.fsdecode(b"\xff\n.py"), "%FF%0A.py"),
        ("\ud800.py", "%5Cud800.py"),
        ("<stdin>", "%3Cstdin%3E"),
    ],
)
def test_files_below_the_root_are_relative(file: str, uri: str) -> None:
    assert artifact(file, os.getcwd()) == {"uri": uri, "uriBaseId": "%SRCROOT%"}


def test_other_files_keep_their_whole_path() -> None:
    outside = os.path.abspath(os.path.join(os.sep, "some where", "b.py"))
    found = artifact(outside, os.getcwd())
    assert set(found) == {"uri"}
    parts = urlsplit(found["uri"])
    assert (parts.scheme, parts.netloc) == ("file", "")
    assert unquote(parts.path).endswith("/some where/b.py")


def test_a_folder_whose_name_only_begins_alike_is_outside(tmp_path: Path) -> None:
    assert "uriBaseId" not in artifact(
        str(tmp_path / "project2" / "a.py"), str(tmp_path / "project")
    )


@pytest.mark.parametrize("root", [os.sep, os.getcwd(), os.getcwd() + os.sep])
def test_the_root_is_a_folder(root: str) -> None:
    uri = run_of(finding(), root=root)["originalUriBaseIds"]["%SRCROOT%"]["uri"]
    assert uri.startswith("file:///")
    assert uri.endswith("/")
    assert not uri.endswith("//") or uri == "file:///"


def prints(*findings: Finding) -> list[str]:
    results = run_of(*findings, root=os.getcwd())["results"]
    return [each["partialFingerprints"]["tensortrail/v1"] for each in results]


def test_fingerprints_follow_the_code_not_the_line() -> None:
    assert prints(finding(site=site(3))) == prints(finding(site=site(40)))
    indented = site(3, 9, "        park( model)")
    assert prints(finding(site=site(3, 5, "    park( model)"))) == prints(finding(site=indented))


def test_fingerprints_leave_the_name_that_an_upload_computes() -> None:
    """github/codeql-action (src/fingerprints.ts) adds `primaryLocationLineHash` where there is
    none, and warns of each that is not what it computes: one that we wrote could only disagree."""
    (result,) = run_of(finding())["results"]
    assert set(result["partialFingerprints"]) == {"tensortrail/v1"}


def test_fingerprints_tell_findings_apart() -> None:
    others = (
        finding(site=site(9)),
        finding(site=site(source="    park(other)")),
        finding(site=site(file="b.py")),
        replace(finding(), code="OFF102"),
    )
    assert len(set(prints(finding(), *others))) == 5


def test_fingerprints_do_not_depend_on_where_the_project_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = prints(finding())
    monkeypatch.chdir(tmp_path)
    assert prints(finding()) == here


def test_quoted_code_becomes_no_link() -> None:
    (result,) = run_of(finding(message="`hooks[0](x)` and [click](http://evil)"))["results"]
    assert "](" not in result["message"]["text"]
