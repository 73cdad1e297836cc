from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tensortrail.rules import Did  # noqa: E402
from tensortrail.tracer.reading.timeline import open_run  # noqa: E402
from tensortrail.tracer.recording.begin import begin  # noqa: E402
from tensortrail.tracer.recording.options import Options  # noqa: E402
from tensortrail.tracer.rehearsal.devices.spec import parse_spec  # noqa: E402


def test_waiting_is_in_the_trail(tmp_path: Path) -> None:
    before = torch.cuda.synchronize
    running = begin(tmp_path / "run", Options(rehearse=parse_spec("cuda")))
    try:
        stream, event = torch.cuda.Stream(), torch.cuda.Event()
        event.record(stream)
        stream.wait_event(event)
        event.synchronize()
        for _ in range(10):
            torch.cuda.synchronize()
    finally:
        running.stop()
    assert not running.trouble
    waits = [event.op for event in open_run(tmp_path / "run").events(Did.SYNC)]
    assert waits == [
        "torch.cuda.Event.record",
        "torch.cuda.Stream.wait_event",
        "torch.cuda.Event.synchronize",
        *["torch.cuda.synchronize"] * 3,
    ]
    assert torch.cuda.synchronize is before
