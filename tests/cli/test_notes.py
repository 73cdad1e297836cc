"""Notes of `tensortrail check`: in short, in full, hidden, and with less evidence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import NOTED, outcome


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return outcome(capsys, "check", *arguments)


@pytest.mark.parametrize(("mildest", "code"), [("note", 1), ("warning", 0), ("error", 0)])
def test_what_fails(
    project: Path, capsys: pytest.CaptureFixture[str], mildest: str, code: int
) -> None:
    (project / "notes.py").write_text(NOTED)
    (project / "worse.py").write_text("import torch\nx = 1 if torch.cuda.is_available else 2\n")
    assert run(capsys, "notes.py", "--fail-on", mildest)[0] == code
    assert run(capsys, "worse.py", "--fail-on", mildest)[0] == 1, "an error always counts"


def test_notes_are_short_and_fail_nothing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "notes.py").write_text(NOTED)
    (project / "a_note.py").write_text(NOTED)
    code, out, _ = run(capsys, "notes.py", "a_note.py")
    heading, said, fix, *places = out.splitlines()
    assert code == 0
    assert heading.startswith("Notes in short")
    assert "--notes full" in heading
    assert said.startswith("note[DEV506] load-without-map-location: ")
    assert fix.startswith("  fix: add `map_location=")
    assert places[:2] == ["  --> a_note.py:4:12", "  --> notes.py:4:12"]
    assert run(capsys)[1].startswith("warning[DEV501]"), "notes come last"


def test_notes_in_full(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "notes.py").write_text(NOTED)
    _, out, _ = run(capsys, "notes.py", "--notes", "full")
    assert "4 |     return torch.load(p).to(device)" in out
    assert "fix: " in out


@pytest.mark.parametrize("format", ["text", "json", "github"])
def test_hidden_notes(project: Path, capsys: pytest.CaptureFixture[str], format: str) -> None:
    (project / "notes.py").write_text(NOTED)
    _, out, _ = run(capsys, "--notes", "hidden", "--format", format)
    assert "DEV501" in out
    assert "DEV506" not in out


def test_hidden_notes_are_counted(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "notes.py").write_text(NOTED)
    (project / "pyproject.toml").write_text('[tool.tensortrail]\nnotes = "hidden"\n')
    said = "No errors or warnings: 1 file checked. 1 note hidden.\n"
    assert run(capsys, "notes.py")[:2] == (0, said)
    assert run(capsys, "notes.py", "--fail-on", "note")[:2] == (1, said)


QUIET = (
    "import torch\n\ndef weights(path):\n    return torch.load(path)\n\nprint(weights('w.pt'))\n"
)


def test_notes_with_less_evidence_are_counted(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "quiet.py").write_text(QUIET)
    counted = "1 note with less evidence is left out (--notes all)."
    said = f"No findings: 1 file checked. {counted}\n"
    assert run(capsys, "quiet.py")[1] == said
    assert run(capsys, "quiet.py")[1] == said, "from the cache"
    assert run(capsys)[1].endswith(f"{counted}\n"), "beside findings"
    assert counted not in run(capsys, "quiet.py", "--notes", "hidden")[1]
    (project / "pyproject.toml").write_text(
        '[tool.tensortrail.per-file-ignores]\n"quiet.py" = ["DEV506"]\n'
    )
    assert run(capsys, "quiet.py")[1] == "No findings: 1 file checked.\n"


def test_notes_with_less_evidence_too(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "quiet.py").write_text(QUIET)
    code, out, _ = run(capsys, "quiet.py", "--notes", "all")
    assert code == 0
    assert "note[DEV506]" in out
    assert "4 |     return torch.load(path)" in out, "in full"
    assert "left out" not in out
    shown = json.loads(run(capsys, "quiet.py", "--notes", "all", "--format", "json")[1])
    assert [each["code"] for each in shown] == ["DEV506"]
    assert run(capsys, "quiet.py", "--notes", "all", "--ignore", "DEV506")[1].startswith("No find")
