"""`--new-since [BASE]`: what a change brought, by the real git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tensortrail.cli import main
from tests.cli.repositories import begun, commit, git

RISKY = "def f(t):\n    return t.weight.device == 'meta'\n"
OLD = """import torch

def weights(path):
    return torch.load(path, map_location="cpu")

print(weights("w.pt"))
"""
NEW = OLD.replace(', map_location="cpu"', "")
"""A note with little evidence: whether it fails depends on what wrote the file."""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    begun(tmp_path, monkeypatch)
    Path(".gitignore").write_text(".tensortrail_cache\n")
    commit(old=RISKY, loads=OLD, gone=RISKY)
    git("switch", "-q", "-c", "branch")
    return tmp_path


def found(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    """The exit code, each finding as `file code`, and the closing line."""
    capsys.readouterr()
    code = main(["check", "--output-format", "concise", *arguments])
    lines = capsys.readouterr().out.splitlines()
    heads = [line.split(" ")[:2] for line in lines[:-1]]
    return code, [f"{place.split(':')[0]} {code}" for place, code in heads] + lines[-1:]


def test_what_was_there_before_is_not_told(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("old.py").write_text("# a line more\n" + RISKY)
    code, told = found(capsys, "--new-since")
    assert (code, told) == (0, ["No findings: 1 file checked. 1 more in HEAD."])
    Path("old.py").write_text(RISKY + RISKY.replace("weight", "bias"))
    code, told = found(capsys, "--new-since")
    assert (code, told[0]) == (1, "old.py DEV501")
    assert told[1].endswith(" 1 more in HEAD."), told


def test_a_note_with_little_evidence_is_told_of_a_changed_line(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("loads.py").write_text(NEW)
    assert found(capsys, "loads.py")[1][:-1] == [], "by itself it is not worth telling"
    code, told = found(capsys, "--new-since")
    assert code == 0
    assert told[0].startswith("loads.py "), told
    assert found(capsys, "--new-since", "--fail-on", "note")[0] == 1
    commit(loads=NEW)
    assert found(capsys, "--new-since")[1] == ["No findings."]
    assert found(capsys, "--new-since", "main")[1][:-1] == told[:-1]


def test_rules_that_are_chosen_are_the_only_ones(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("loads.py").write_text(NEW)
    Path("old.py").write_text("x = 1\n" + RISKY + RISKY.replace("weight", "bias"))
    assert found(capsys, "--new-since", "--select", "DEV501")[1][:-1] == ["old.py DEV501"]


def test_files_with_another_name_and_files_in_folders(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    git("mv", "gone.py", "renamed.py")
    Path("sub").mkdir()
    Path("sub/fresh.py").write_text(RISKY.replace("weight", "bias"))
    assert found(capsys, "--new-since")[1][:-1] == ["sub/fresh.py DEV501"]
    assert found(capsys, "renamed.py", "--new-since")[1][:-1] == []
    assert found(capsys, "--new-since=HEAD", "sub/fresh.py")[1][:-1] == ["sub/fresh.py DEV501"]
    monkeypatch.chdir("sub")
    assert found(capsys, "..", "--new-since")[1][:-1] == ["../sub/fresh.py DEV501"]


def test_settings_of_the_project_hold_for_both(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = (
        '[tool.tensortrail]\nper-file-ignores = {"old.py" = ["DEV501"]}\nexclude = ["gone.py"]\n'
    )
    Path("pyproject.toml").write_text(table)
    for name in ("old", "gone"):
        Path(f"{name}.py").write_text(RISKY + RISKY.replace("weight", "bias"))
    assert found(capsys, "--new-since")[1] == ["No findings: 1 file checked."]


def test_nothing_is_written_outside_of_its_own_folder(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = repository / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    Path("link.py").symlink_to("old.py")
    commit(risky=RISKY)
    Path("risky.py").write_text(RISKY + "\n")
    assert found(capsys, "risky.py", "--new-since")[1][:-1] == []
    assert list(temporary.iterdir()) == []


def test_a_tree_that_names_files_outside_of_itself(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """git refuses to make one, and reads it."""
    temporary = repository / "temporary" / "below" / "here"
    temporary.mkdir(parents=True)
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    old = written("blob", RISKY.encode())
    above = written("tree", b"100644 evil.py\0" + old)
    for _ in range(3):
        above = written("tree", b"40000 ..\0" + above)
    tree = written("tree", b"40000 ..\0" + above + b"100644 old.py\0" + old)
    made = git("commit-tree", tree.hex(), "-m", "evil", "-p", "HEAD").decode().strip()
    git("update-ref", "refs/heads/evil", made)
    git("symbolic-ref", "HEAD", "refs/heads/evil")
    Path("old.py").write_text(RISKY + RISKY.replace("weight", "bias"))
    assert found(capsys, "old.py", "--new-since")[1][:-1] == ["old.py DEV501"]
    assert list(repository.rglob("evil.py")) == []


def written(kind: str, data: bytes) -> bytes:
    """The name of the object, as it stands in a tree."""
    command = ["git", "hash-object", "--literally", "-w", "-t", kind, "--stdin"]
    done = subprocess.run(command, input=data, check=True, capture_output=True)
    return bytes.fromhex(done.stdout.decode())


def test_what_it_cannot_be_combined_with(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for more in (["--changed-only"], ["--baseline", "x.json"], ["-"], ["--write-baseline"]):
        assert main(["check", "--new-since", "main", *more]) == 2
        assert "--new-since" in capsys.readouterr().err
    assert main(["check", "--new-since", "nowhere"]) == 2
    assert "--new-since nowhere: git knows no such commit" in capsys.readouterr().err
