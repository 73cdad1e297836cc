"""`tensortrail runs` says how each run ended: recorded programs end in every way there is."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

import tensortrail
from tensortrail.cli import main
from tests import warm

ENDINGS = {
    "x.numpy()": "ended",
    "raise SystemExit": "ended",
    "1 / 0": "failed: ZeroDivisionError",
    "raise SystemExit(4)": "exit code 4",
    "raise SystemExit('no')": "exit code 1",
    "raise KeyboardInterrupt": "interrupted",
    "import os; os.kill(os.getpid(), 9)": "killed",
}


def outcomes(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    capsys.readouterr()
    assert main(["runs", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    return {Path(each["folder"]).name: each["outcome"] for each in told}


@pytest.mark.complete
def test_every_way_to_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    expected = {}
    for number, (last, outcome) in enumerate(ENDINGS.items()):
        (tmp_path / "train.py").write_text(f"import torch\nx = torch.ones(2)\n{last}\n")
        out = [f"--directory=.tensortrail/{number}", "--quiet", "train.py"]
        warm.run(["-m", "tensortrail", "trace", *out], tmp_path)
        expected[str(number)] = outcome
    assert outcomes(capsys) == expected
    assert main(["runs"]) == 0
    failed = next(each for each in capsys.readouterr().out.splitlines() if each.startswith("2 "))
    assert "  failed: ZeroDivisionError  " in failed


def test_a_block_that_goes_on_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with suppress(KeyError), tensortrail.trace(".tensortrail/a"):
        torch.ones(2)
        assert outcomes(capsys) == {"a": "running"}
        raise KeyError("x")
    assert outcomes(capsys) == {"a": "failed: KeyError"}
    (trail,) = (tmp_path / ".tensortrail" / "a").glob("*.trail")
    trail.write_bytes(trail.read_bytes()[:-3])  # its last words are lost
    monkeypatch.setattr("tensortrail.tracer.trail.outcome.platform.node", lambda: "elsewhere")
    assert outcomes(capsys) == {"a": "no end"}
