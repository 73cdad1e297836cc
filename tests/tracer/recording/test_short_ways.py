"""Moves of plain tensors are recorded by short ways, which forget nothing the long ones knew."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.focus import parse_focus
from tensortrail.tracer.reading.timeline import open_run
from tensortrail.tracer.recording.begin import begin
from tensortrail.tracer.recording.options import Options
from tensortrail.tracer.recording.session import Session


@contextmanager
def recording(folder: Path, focus: str = "") -> Iterator[Session]:
    running = begin(folder / "run", Options(focus=parse_focus(focus)))
    try:
        yield running
    finally:
        running.stop()
    assert not running.recorder.writer.fault


def test_nothing_is_kept_of_a_synced_weight_that_is_gone(tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(2, 2).state_dict(), tmp_path / "weights.pt")
    with recording(tmp_path) as running:
        loads, incomplete = running.recorder.loads, running.recorder.incomplete_loads
        net = torch.nn.Linear(2, 2)
        net.load_state_dict(torch.load(tmp_path / "weights.pt"))
        net.load_state_dict(torch.nn.Linear(2, 2).state_dict())
        assert loads.files or incomplete.untrained
        del net
        gc.collect()
        running.recorder.storages.bury()
        assert not loads.files
        assert not incomplete.untrained


def test_whether_operations_are_looked_at_is_known_after_moves(tmp_path: Path) -> None:
    with recording(tmp_path) as running:
        recorder = running.recorder
        ones = torch.ones(4)
        assert not recorder.alert
        fresh = torch.empty(4)
        ones.to(torch.float64)
        assert recorder.alert
        fresh.fill_(0)
        assert not recorder.alert, "a move that was recorded meanwhile holds nothing up"
        copy = torch.empty(4).to(torch.float64)
        assert recorder.alert
        del copy
        recorder.storages.bury()
        assert not recorder.alert
        ones.to("meta")
        assert recorder.alert


def test_a_focus_holds_for_moves(tmp_path: Path) -> None:
    with recording(tmp_path, "size>=1KB"):
        for count in (4, 1000):
            torch.ones(count).to("meta")
    (moved,) = open_run(tmp_path / "run").events(Did.MOVE)
    assert moved.storage is not None
    assert moved.storage.shape == (1000,)


def test_moves_of_every_kind_are_told_apart(tmp_path: Path) -> None:
    with recording(tmp_path):
        ones = torch.ones(4)
        for _ in range(3):
            ones.to("meta", torch.float64, True)
            ones.to(device="meta", non_blocking=True)
            ones.to("meta")
    moves = open_run(tmp_path / "run").events(Did.MOVE)
    told = [(move.storage.dtype, bool(move.facts)) for move in moves if move.storage is not None]
    assert told == [("float64", True), ("float32", True), ("float32", False)] * 3
    assert {move.other.device for move in moves if move.other is not None} == {"cpu"}
