"""`tensortrail settings`: a patch that really applies, or what to set by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("libcst")

from tensortrail.cli import main
from tensortrail.cli.exit_codes import CLEAN, FAILED, FOUND
from tests.rules.recorded import record

MAPPED = """\
import torch
path = folder + "/model.pt"  # →
torch.save({"weight": torch.ones(8)}, path)
state = torch.load(path, mmap=True)
torch.save({"other": torch.ones(8)}, path)
"""
MENDED = MAPPED.replace("mmap=True", "mmap=False")
TOOLS = (("patch", "-p0"), ("patch", "-p1"), ("git", "apply"))


def settings(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(["settings", "run", *options])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("tool", TOOLS, ids=" ".join)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_patch_applies_and_takes_the_finding_away(
    here: Path, capsys: pytest.CaptureFixture[str], tool: tuple[str, ...], newline: str
) -> None:
    program, _, _ = record(here, MAPPED.replace("\n", newline))
    code, patch, told = settings(capsys)
    assert code == FOUND
    assert told == "1 setting in a patch for 1 file, 0 to set by hand\n"
    assert patch.startswith("# STO206 program.py:5: mmap-overwrite\n#   torch mmap=False: reads")
    done = subprocess.run(tool, input=patch.encode(), cwd=here, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert program.read_bytes() == MENDED.replace("\n", newline).encode()
    (here / "again").mkdir()
    record(here / "again", program.read_text())
    assert main(["settings", "again/run"]) == CLEAN


def test_in_a_folder_and_by_hand_besides(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be patched stands behind the patch, and the patch still applies."""
    folder = here / "my scripts"
    folder.mkdir()
    both = MAPPED + (
        "torch.save({'weight': torch.ones(8)}, path + '2')\n"
        "kept = torch.load(path + '2', mmap=True), torch.load(path + '2', mmap=True)\n"
        "torch.save({}, path + '2')\n"
    )
    program, _, _ = record(folder, both)
    (here / "run").symlink_to(folder / "run")
    code, patch, told = settings(capsys)
    assert code == FOUND
    assert told == "1 setting in a patch for 1 file, 1 to set by hand\n"
    assert patch.endswith(
        "#   by hand, torch.load: the run does not know the call that takes it\n"
        "load(..., mmap=False)\n"
    )
    for tool in TOOLS:
        program.write_text(both)
        done = subprocess.run(tool, input=patch.encode(), capture_output=True, check=False)
        assert done.returncode == 0, (tool, done.stderr)
        assert "state = torch.load(path, mmap=False)" in program.read_text()


def test_a_script_above_this_folder(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program, _, _ = record(here, MAPPED)
    (here / "below").mkdir()
    monkeypatch.chdir(here / "below")
    assert main(["settings", "../run"]) == FOUND
    out, told = capsys.readouterr()
    assert "--- ./../program.py" in out
    assert "program.py is outside this folder" in told
    assert main(["settings", "../run", "--apply"]) == CLEAN
    assert program.read_text() == MENDED


def test_apply(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, _, _ = record(here, MAPPED)
    program.chmod(0o640)
    code, out, told = settings(capsys, "--apply")
    assert (code, out) == (CLEAN, "")
    assert told == "1 file changed, 0 settings to set by hand\n"
    assert program.read_text() == MENDED
    assert program.stat().st_mode & 0o777 == 0o640


def test_a_source_that_changed_is_left_alone(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program, _, _ = record(here, MAPPED)
    program.write_text("# another line\n" + MAPPED)
    for options in ((), ("--apply",)):
        code, out, _ = settings(capsys, *options)
        assert code == FOUND
        assert "by hand, torch.load, program.py:4: it changed since the run" in out
        assert "\n---" not in out
        assert program.read_text() == "# another line\n" + MAPPED
    program.unlink()
    code, out, _ = settings(capsys)
    assert code == FOUND
    assert "it cannot be read: No such file" in out


def test_a_file_that_cannot_be_written(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str, data: bytes, judged: bytes) -> None:
        raise PermissionError(13, "Permission denied")

    program, _, _ = record(here, MAPPED)
    monkeypatch.setattr("tensortrail.files.write", refuse)
    code, _, told = settings(capsys, "--apply")
    assert code == FAILED
    assert "program.py: Permission denied" in told
    assert "0 files changed, 0 settings to set by hand" in told
    assert program.read_text() == MAPPED


def test_nothing_to_set(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(here, MENDED)
    assert settings(capsys) == (CLEAN, "", "this run suggests no settings\n")


def test_no_run(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, told = settings(capsys)
    assert (code, out) == (FAILED, "")
    assert "a run is recorded by: tensortrail trace script.py" in told


def test_json(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(here, MAPPED)
    _, out, _ = settings(capsys, "--format", "json")
    told = json.loads(out)
    (setting,) = told["settings"]
    assert (setting["name"], setting["value"], setting["in_patch"]) == ("mmap", "False", True)
    assert setting["at"] == {"file": "program.py", "line": 4}
    assert setting["findings"] == [{"code": "STO206", "file": "program.py", "line": 5}]
    assert setting["snippet"] == "load(..., mmap=False)"
    assert "+state = torch.load(path, mmap=False)" in told["patch"]


def test_other_rules_are_not_asked(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(here, MAPPED)
    assert settings(capsys, "--select", "OFF")[0] == CLEAN


def test_a_run_is_read_without_torch(here: Path) -> None:
    record(here, MAPPED)
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "from tensortrail.cli import main; sys.exit(main(['settings', 'run']))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == FOUND, done.stderr
    assert "+state = torch.load(path, mmap=False)" in done.stdout
