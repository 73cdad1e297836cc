"""A probe that takes its process down costs its own row only."""

from __future__ import annotations

import io
import os
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler

import pytest

pytest.importorskip("torch")

import torch

from tensortrail.doctor.subclass import isolated

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def job(value: str) -> Callable[[], str]:
    def run() -> str:
        if value == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if value == "leave":
            os._exit(0)
        if value == "late":
            time.sleep(60)
        if value == "raise":
            raise MemoryError("in the child")
        return value

    return run


def test_the_others_still_answer(capfd: pytest.CaptureFixture[str]) -> None:
    jobs = [job(each) for each in ("a", "kill", "b", "leave", "raise", "c")]
    rows = isolated.each_survived(jobs, lambda number, fate: f"{number} {fate}", True)
    assert rows == [
        "a", "1 kills the process (SIGKILL)", "b", "3 ends the process", "4 ends the process", "c"
    ]  # fmt: skip
    assert capfd.readouterr().out == ""


def test_one_that_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated, "PATIENCE", 0.3)
    rows = isolated.each_survived([job("late"), job("b")], lambda number, fate: fate, True)
    assert rows == ["does not come back within 0 s", "b"]


def test_a_tensor_is_shared_in_the_child_where_the_parent_has_shared_one() -> None:
    def shared() -> list[float]:
        sent = io.BytesIO()
        ForkingPickler(sent).dump(torch.ones(2))
        values: list[float] = ForkingPickler.loads(sent.getvalue()).tolist()
        return values

    assert shared() == [1.0, 1.0]
    assert isolated.each_survived([shared], lambda _, fate: [], True) == [[1.0, 1.0]]


def test_without_a_child_they_run_here() -> None:
    assert isolated.each_survived([job("a"), job("b")], lambda *_: "", False) == ["a", "b"]


def test_what_a_class_without_storage_does_to_torch() -> None:
    """The reason for all this: sharing the memory of a wrapper ends the process."""
    if sys.platform != "linux":
        pytest.skip("seen on Linux")
    from tensortrail.doctor.subclass.examine import examine
    from tests.doctor.subclass.packed import weight

    found = examine(weight, ["staging"])
    (shared,) = (row for row in found.rows if row.op == "share_memory_()")
    assert shared.told.startswith("kills the process (SIG")
