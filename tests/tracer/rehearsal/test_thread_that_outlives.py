"""A thread of a rehearsed recording may end after it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.tracer.recording.begin import begin
from tensortrail.tracer.recording.options import Options
from tensortrail.tracer.rehearsal.devices.spec import parse_spec


def test_a_thread_that_outlives_the_recording_leaves_no_fault(tmp_path: Path) -> None:
    going, over = threading.Event(), threading.Event()

    def work() -> None:
        going.set()
        over.wait(30)

    running = begin(tmp_path / "run", Options(rehearse=parse_spec("cuda")))
    thread = threading.Thread(target=work)
    thread.start()
    going.wait(30)
    running.stop()
    over.set()
    thread.join(30)
    assert not running.recorder.writer.fault
