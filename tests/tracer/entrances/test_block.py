from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import tensortrail  # noqa: E402
from tensortrail.rules import Did  # noqa: E402
from tensortrail.tracer.recording.session import running  # noqa: E402
from tests import warm  # noqa: E402


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


def test_an_exception_passes_through_and_is_explained(tmp_path: Path) -> None:
    run = tensortrail.trace(tmp_path / "run")
    weight = torch.ones(2, 2, device="meta")
    with pytest.raises(RuntimeError), run:
        weight.tolist()
    assert "weight" in run.explanation
    assert "meta" in run.explanation


PROGRAM = """\
import tensortrail, torch
weight = torch.ones(2, device="meta")
try:
    with tensortrail.trace("run"):
        weight.tolist()
except RuntimeError:
    {handler}
"""


@pytest.mark.parametrize(("handler", "explained"), [("raise", True), ("pass", False)])
def test_only_what_ends_the_program_is_explained_to_people(
    tmp_path: Path, handler: str, explained: bool
) -> None:
    (tmp_path / "prog.py").write_text(PROGRAM.format(handler=handler))
    done = warm.run(["prog.py"], tmp_path)
    assert done.returncode == int(explained)
    traceback, _, told = done.stderr.partition("tensortrail: what was where")
    assert bool(told) is explained
    assert ("Traceback" in traceback) is explained


def test_a_block_inside_another_joins_its_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with tensortrail.trace(tmp_path / "run") as outer:
        for _ in range(2):
            with tensortrail.trace(tmp_path / "other") as inner, inner.phase("inside"):
                torch.ones(3).to("meta")
            assert running() is not None
        assert inner.directory == outer.directory
        assert [move.phase for move in inner.timeline().events(Did.MOVE)] == ["inside"] * 2
    assert running() is None
    assert not (tmp_path / "other").exists()
    assert capsys.readouterr().err.count("into the run that is on") == 1


def test_a_block_inside_another_has_its_own_devices(tmp_path: Path) -> None:
    file = tmp_path / "model.pt"
    torch.save({"weight": torch.ones(1000)}, file)
    with tensortrail.trace(tmp_path / "run") as outer:
        weights = torch.load(file, mmap=True)
        with tensortrail.trace(rehearse="cuda:2", guard=True):
            assert torch.ones(3).to("cuda:1").is_cuda
            with pytest.raises(tensortrail.Stopped):
                torch.save(weights, file)
        assert not torch.cuda.is_available()
        torch.ones(3).to("meta")
    moves = outer.timeline().events(Did.MOVE)
    assert [move.storage.device for move in moves if move.storage] == ["cuda:1", "meta"]


def test_bad_options_are_told_before_anything_begins(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        tensortrail.trace(tmp_path, max_size="lots")
    with pytest.raises(ValueError, match="write device=cuda"):
        tensortrail.trace(tmp_path, focus="x")
    assert list(tmp_path.iterdir()) == []


def test_findings_of_a_run(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 2, device="meta")
    with tensortrail.trace(tmp_path / "run") as run:
        torch.save(model.state_dict(), tmp_path / "model.pt")
    assert "SHD405" in {finding.code for finding in run.findings()}


def test_a_block_can_be_rehearsed(tmp_path: Path) -> None:
    with tensortrail.trace(tmp_path / "run", rehearse="cuda:2") as run:
        assert torch.cuda.device_count() == 2
        moved = torch.ones(3).to("cuda:1")
        assert (moved * 2).sum().item() == 6
    assert not torch.cuda.is_available()
    (move,) = run.timeline().events(Did.MOVE)
    assert move.storage is not None
    assert move.storage.device == "cuda:1"


def test_a_copy_on_the_host_has_bytes_of_its_own(tmp_path: Path) -> None:
    with tensortrail.trace(tmp_path / "run", rehearse="cuda"):
        source = torch.ones(3, device="cuda")
        for copied in (source.to(device="cpu"), source.to("cpu"), source.cpu()):
            assert copied.data_ptr() != source.data_ptr()
            copied.zero_()
        assert source.sum().item() == 3
