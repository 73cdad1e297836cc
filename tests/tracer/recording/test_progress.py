from __future__ import annotations

import io
import time
from pathlib import Path

import pytest

pytest.importorskip("msgpack")

from tensortrail.tracer.recording.progress import Progress
from tensortrail.tracer.trail.writer import TrailWriter


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_long_run_tells_rarer_and_rarer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, terminal = TrailWriter(str(tmp_path / "x.trail"), {}, 1 << 20), Terminal()
    told = []
    for second in range(0, 600, 10):
        monkeypatch.setattr(time, "monotonic", lambda now=second: float(now))
        if not second:
            Progress(writer, terminal)
        writer.flush()
        told.append(terminal.getvalue().count("\n"))
    assert [second for second in range(60) if told[second] > told[second - 1]] == [6, 12, 24, 48]
    assert "0 events" in terminal.getvalue()


def test_no_terminal_no_line_and_a_closed_one_is_no_trouble(tmp_path: Path) -> None:
    writer, stream = TrailWriter(str(tmp_path / "x.trail"), {}, 1 << 20), io.StringIO()
    Progress(writer, stream, first=0.0)
    writer.flush()
    assert stream.getvalue() == ""
    terminal = Terminal()
    Progress(writer, terminal, first=0.0)
    terminal.close()
    writer.flush()
    writer.flush()
    assert not writer.trouble
