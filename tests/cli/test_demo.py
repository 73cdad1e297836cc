"""The demo's story has an end: a program fails, is explained, mended, and runs."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import pytest

from tensortrail.cli.demo import PROGRAM, run
from tests import warm

pytestmark = pytest.mark.long


def test_the_program_is_mended_and_runs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr("tensortrail.cli.demo.subprocess.run", _started_warm)
    assert run(Namespace(folder=str(tmp_path / "demo"))) == 0
    shown, said = capfd.readouterr()
    assert "RuntimeError: Expected all tensors to be on the same device" in said
    assert "made at train.py:28, torch.randint" in said
    assert '+prompt = torch.randint(1000, (1, 8), device="cuda:0")' in shown
    assert shown.count("next word:") == 1 + PROGRAM.count("next word:")  # the patch shows the line
    assert "no findings" in said
    shown_there = {_without_numbers(each) for each in (shown + said).splitlines()}
    assert {_without_numbers(each) for each in _lines_of_readme()} <= shown_there
    assert "No findings: 1 file checked." in shown
    assert next((tmp_path / "demo" / ".tensortrail").glob("*/report.html")).stat().st_size > 10_000


def test_a_program_that_is_there_is_left_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text("mine")
    assert run(Namespace(folder=str(tmp_path))) == 2
    assert (tmp_path / "train.py").read_text() == "mine"
    assert "name another folder" in capfd.readouterr().err


def test_a_folder_that_cannot_be_made_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "demo").write_text("mine")
    assert run(Namespace(folder=str(tmp_path / "demo"))) == 2
    error, hint = capfd.readouterr().err.splitlines()
    assert error.startswith(f"tensortrail: error: {tmp_path}/demo: ")
    assert "name another folder" in hint


def test_without_torch_it_says_what_is_missing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert run(Namespace(folder=str(tmp_path / "demo"))) == 2
    assert "torch is not installed here" in capfd.readouterr().err
    assert not (tmp_path / "demo").exists()


def _started_warm(command: Sequence[str], cwd: Path, check: bool) -> None:
    assert (command[0], check) == (sys.executable, False)
    done = warm.run(command[1:], cwd)
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)


def _lines_of_readme() -> list[str]:
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    block = text[text.index("$ tensortrail trace --rehearse cuda train.py\n") :].partition("```")[0]
    return [each for each in block.splitlines() if each and each != "..."]


def _without_numbers(line: str) -> str:
    """Losses and line numbers of torch's own files are not the same everywhere."""
    return re.sub(r"\d+(\.\d+)?", "N", line).rstrip()
