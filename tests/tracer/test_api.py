from __future__ import annotations

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import tensortrail  # noqa: E402
from tensortrail.rules import Did  # noqa: E402
from tensortrail.tracer.session import AlreadyRecording, running  # noqa: E402


def test_a_block_is_recorded(tmp_path: Path) -> None:
    with tensortrail.trace(tmp_path / "run") as run:
        with run.phase("prepare"):
            torch.ones(3).to("meta")
        assert [event.did for event in run.timeline().events(Did.MOVE)] == [Did.MOVE]
    torch.zeros(2)
    timeline = run.timeline()
    (move,) = timeline.events(Did.MOVE)
    assert (move.phase, move.op) == ("prepare", "Tensor.to")
    assert move.site is not None
    assert Path(move.site.file) == Path(__file__)
    assert [event.op for event in timeline.events(Did.CREATE)] == ["torch.ones"]
    assert running() is None


def test_an_exception_passes_through_and_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "excepthook", lambda *_: None)
    run = tensortrail.trace(tmp_path / "run")
    weight = torch.ones(2, 2, device="meta")
    with pytest.raises(RuntimeError) as caught, run:
        weight.tolist()
    assert "weight" in run.explanation
    assert "meta" in run.explanation
    sys.excepthook(RuntimeError, caught.value, None)
    assert "what was where" in capsys.readouterr().err
    sys.excepthook(RuntimeError, RuntimeError("another"), None)
    assert capsys.readouterr().err == ""


def test_one_recording_at_a_time(tmp_path: Path) -> None:
    with tensortrail.trace(tmp_path / "run"):
        with pytest.raises(AlreadyRecording):
            tensortrail.trace(tmp_path / "other").__enter__()
        assert running() is not None


def test_bad_options_are_told_before_anything_begins(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is no size"):
        tensortrail.trace(tmp_path, max_size="lots")
    with pytest.raises(ValueError, match="write device=cuda"):
        tensortrail.trace(tmp_path, focus="x")
    assert list(tmp_path.iterdir()) == []


def test_findings_of_a_run(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 2, device="meta")
    with tensortrail.trace(tmp_path / "run") as run:
        torch.save(model.state_dict(), tmp_path / "model.pt")
    assert "SHD405" in {finding.code for finding in run.findings()}
