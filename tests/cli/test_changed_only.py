"""`--changed-only [BASE]`: the files of a branch or of the working tree, by the real git."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.cli import main
from tests.cli.repositories import begun, commit, git

RISKY = "def f(t):\n    return t.weight.device == 'meta'\n"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    begun(tmp_path, monkeypatch)
    Path(".gitignore").write_text("ignored.py\n.tensortrail_cache\n")
    commit(old=RISKY, other="x = 1\n", gone=RISKY)
    git("switch", "-q", "-c", "branch")
    return tmp_path


def found(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str], str]:
    capsys.readouterr()
    code = main(["check", "--output-format", "concise", *arguments])
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    return code, [line.partition(":")[0] for line in lines[:-1]], captured.err


def test_the_working_tree(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert found(capsys, "--changed-only") == (0, [], "")
    Path("other.py").write_text(RISKY)
    Path("fresh.py").write_text(RISKY)
    Path("ignored.py").write_text(RISKY)
    Path("gone.py").unlink()
    assert found(capsys, "--changed-only") == (1, ["fresh.py", "other.py"], "")
    assert found(capsys, "other.py", "--changed-only")[1] == ["other.py"]
    assert found(capsys, "old.py", "--changed-only")[:2] == (0, [])


def test_before_the_first_commit_all_is_new(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    git("init", "-q")
    Path("staged.py").write_text(RISKY)
    git("add", ".")
    Path("untracked.py").write_text(RISKY)
    assert found(capsys, "--changed-only") == (1, ["staged.py", "untracked.py"], "")


def test_since_a_branch_left_its_base(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(mine=RISKY)
    git("switch", "-q", "main")
    commit(theirs=RISKY)
    git("switch", "-q", "branch")
    assert found(capsys, "--changed-only")[1] == []
    assert found(capsys, "--changed-only", "main")[1] == ["mine.py"]
    (repository / "sub").mkdir()
    monkeypatch.chdir("sub")
    assert found(capsys, "..", "--changed-only", "main")[1] == ["../mine.py"]


def test_what_git_refuses_is_told(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = found(capsys, "--changed-only", "old.py")
    assert code == 2
    assert "git knows no such commit: for the changed files of a path" in err
    assert found(capsys, "--changed-only=--output=x")[0] == 2
    assert not Path("x").exists()
    git("switch", "-q", "--orphan", "unrelated")
    commit(alone=RISKY)
    assert "fetch more of the history" in found(capsys, "--changed-only", "main")[2]
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert "--changed-only: git: " in found(capsys, "--changed-only")[2]
    monkeypatch.setenv("PATH", "")
    assert "--changed-only needs git" in found(capsys, "--changed-only")[2]


def test_without_a_change_there_is_a_report_too(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--changed-only"]) == 0
    assert capsys.readouterr().out == "No findings: no Python file was changed.\n"
    sarif = ["check", "--changed-only", "--output-format", "sarif", "--output-file", "found.sarif"]
    assert main(sarif) == 0
    assert '"results": []' in Path("found.sarif").read_text(), "an upload fails without a file"
