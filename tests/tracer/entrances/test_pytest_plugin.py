"""`pytest --tensortrail`: the same outcomes, and a trail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.rules import Did
from tensortrail.tracer.reading.timeline import open_run

TESTS = """\
import pytest, torch

def test_passes():
    assert torch.ones(2).to("meta").device.type == "meta"

def test_fails():
    torch.ones(2, device="meta").item()

@pytest.mark.skip
def test_skipped(): ...

@pytest.mark.xfail(strict=True)
def test_expected():
    raise RuntimeError
"""


def outcomes(folder: Path, *options: str) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    return done.stdout + done.stderr


def told(text: str) -> list[str]:
    """The lines that say how each test ended."""
    words = ("PASSED", "FAILED", "SKIPPED", "XFAIL")
    return sorted(line for line in text.splitlines() if line.startswith(words))


def test_outcomes_are_the_same_and_there_is_a_trail(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    plain = outcomes(tmp_path)
    traced = outcomes(tmp_path, "--tensortrail", "--tensortrail-directory", "run")
    assert told(traced) == told(plain)
    assert len(told(plain)) == 4
    assert "events in" in traced
    (move,) = open_run(tmp_path / "run").events(Did.MOVE)
    assert move.phase == "test_it.py::test_passes"
    assert move.site is not None
    assert move.site.line == 4


def test_without_the_option_nothing_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import sys\ndef test_it(): assert 1\n")
    assert "events in" not in outcomes(tmp_path)
    assert not (tmp_path / ".tensortrail").exists()


def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(): ...\n")
    (tmp_path / "taken").write_text("")
    text = outcomes(tmp_path, "--tensortrail", "--tensortrail-directory", "taken")
    assert "--tensortrail" in text
    assert "taken" in text
    assert "INTERNALERROR" not in text
