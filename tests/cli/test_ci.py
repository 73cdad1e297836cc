"""The action, the GitLab job and the pre-commit hooks do in a scratch project what they promise."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.analyzer.test_notebooks import notebook

ROOT = Path(__file__).parents[2]
RISKY = "def f(t):\n    return t.weight.device == 'meta'\n"
UNUSED = "x = 1  # tensortrail: ignore[DEV501]\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    tools = tmp_path / "bin"
    tools.mkdir()
    tool = tools / "tensortrail"
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tensortrail "$@"\n')
    tool.chmod(0o755)
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "bad.py").write_text(RISKY)
    (tmp_path / "project" / "clean.py").write_text("x = 1\n")
    return tmp_path / "project"


def environment(project: Path, **more: str) -> dict[str, str]:
    kept = {name: each for name, each in os.environ.items() if not name.startswith("GIT_")}
    path = f"{project.parent / 'bin'}{os.pathsep}{kept['PATH']}"
    return {**kept, "PATH": path, "PRE_COMMIT_HOME": str(project.parent / "kept"), **more}


def bash(script: str, project: Path, **more: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    env = environment(project, **more)
    return subprocess.run(command, cwd=project, env=env, capture_output=True, text=True)


def run_action(project: Path, **inputs: str) -> tuple[int, str, str]:
    """Its step that checks, with its inputs; the code, what was printed, the job's summary."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert inputs.keys() <= action["inputs"].keys()
    given = {name: each["default"] for name, each in action["inputs"].items()} | inputs
    install, check = action["runs"]["steps"]
    assert install["run"] == 'python -m pip install --quiet "$GITHUB_ACTION_PATH"'
    env = {
        name: given[text.removeprefix("${{ inputs.").removesuffix(" }}")]
        for name, text in check["env"].items()
    }
    summary = project.parent / "summary.md"
    summary.write_text("")
    done = bash(check["run"], project, GITHUB_STEP_SUMMARY=str(summary), **env)
    return done.returncode, done.stdout, summary.read_text()


@pytest.mark.complete
def test_the_action_annotates_summarizes_and_fails(project: Path) -> None:
    code, printed, summary = run_action(project, **{"sarif-file": "found.sarif"})
    assert code == 1
    assert printed.startswith("::error file=bad.py,line=2,endLine=2,title=DEV501 device-eq-str")
    assert "| error | bad.py:2:12 | **DEV501 device-eq-str**" in summary
    (run,) = json.loads((project / "found.sarif").read_text())["runs"]
    assert [each["ruleId"] for each in run["results"]] == ["DEV501"]
    code, printed, summary = run_action(project, paths="clean.py bad.py", arguments="--select OFF")
    assert (code, "No findings: 2 files checked." in summary) == (0, True)
    code, printed, summary = run_action(project, paths="clean.py\nbad.py\n", arguments="\n")
    assert (code, printed.count("::error")) == (1, 1), "a block of YAML has line ends"
    code, printed, summary = run_action(project, paths="nowhere")
    assert (code, summary) == (2, "")


def test_the_documented_workflow_is_one_and_checks_a_push_too() -> None:
    text = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    workflow = yaml.load(text.split("```yaml\n")[1].split("```")[0], yaml.BaseLoader)
    assert workflow.keys() == {"name", "on", "jobs"}
    assert set(workflow["on"]) == {"pull_request", "push"}
    ours = workflow["jobs"]["tensortrail"]["steps"][2]
    assert ours["uses"].startswith("<account>/tensortrail@")
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert ours["with"].keys() <= action["inputs"].keys()
    base = ours["with"]["changed-only"]
    assert base.startswith("${{ github.base_ref && "), "a push has no base: all is checked"


@pytest.mark.parametrize(
    ("service", "file"),
    [
        ("vendor.github-actions", "action.yml"),
        ("vendor.github-workflows", "docs/ci.md"),
        ("vendor.gitlab-ci", "ci/gitlab.yml"),
    ],
)
def test_the_services_know_our_files(service: str, file: str, tmp_path: Path) -> None:
    pytest.importorskip("check_jsonschema")
    text = (ROOT / file).read_text(encoding="utf-8")
    if file.endswith(".md"):
        text = text.split("```yaml\n")[1].split("```")[0]
    (tmp_path / "given.yml").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", service, "given.yml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_hooks_are_a_manifest_that_pre_commit_takes() -> None:
    pytest.importorskip("pre_commit")
    command = [sys.executable, "-m", "pre_commit", "validate-manifest", ".pre-commit-hooks.yaml"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_job_of_gitlab_reports_and_fails(project: Path) -> None:
    (job,) = yaml.safe_load((ROOT / "ci" / "gitlab.yml").read_text(encoding="utf-8")).values()
    done = bash("\n".join(job["script"]), project, **job["variables"])
    assert done.returncode == 1
    assert "bad.py:2:12: DEV501" in done.stdout
    (issue,) = json.loads((project / job["artifacts"]["reports"]["codequality"]).read_text())
    assert issue["location"] == {"path": "bad.py", "lines": {"begin": 2}}


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false"]
    subprocess.run(
        ["git", *who, *arguments], cwd=folder, check=True, capture_output=True,
        env=environment(folder),
    )  # fmt: skip


def pre_commit(project: Path, *hooks: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """The hooks of this repository, in the environment that the tests run in: what pre-commit
    would install is here already."""
    repository = project.parent / "hooks"
    repository.mkdir(exist_ok=True)
    shutil.copy(ROOT / ".pre-commit-hooks.yaml", repository)
    git(repository, "init", "-q")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "--allow-empty", "-m", "hooks")
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=repository, capture_output=True, text=True, check=True
    )
    here = [{**hook, "language": "system"} for hook in hooks]
    listed = {"repo": str(repository), "rev": head.stdout.strip(), "hooks": here}
    (project / ".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": [listed]}))
    git(project, "init", "-q")
    git(project, "add", ".")
    command = [sys.executable, "-m", "pre_commit", "run"]
    env = environment(project)
    return subprocess.run(command, cwd=project, env=env, capture_output=True, text=True)


@pytest.mark.complete
def test_pre_commit_fails_fixes_and_skips(project: Path) -> None:
    pytest.importorskip("pre_commit")
    check, fix, doctor = ({"id": f"tensortrail{name}"} for name in ("", "-fix", "-doctor"))
    (project / "nb.ipynb").write_bytes(notebook(RISKY))
    done = pre_commit(project, check)
    assert done.returncode == 1, done.stderr
    assert "bad.py:2:12" in done.stdout
    assert "nb.ipynb:cell 1:2:12" in done.stdout
    (project / "bad.py").write_text(UNUSED)
    (project / "nb.ipynb").unlink()
    done = pre_commit(project, fix, doctor)
    assert done.returncode == 1
    assert "files were modified by this hook" in done.stdout
    assert (project / "bad.py").read_text() == "x = 1\n"
    assert "(no files to check)Skipped" in done.stdout
    done = pre_commit(project, check, fix)
    assert (done.returncode, done.stdout.count("Passed")) == (0, 2)
