"""Chrome trace events."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from tensortrail.rules.timeline import Did
from tensortrail.tracer.exports import perfetto
from tensortrail.tracer.reading.timeline import RunTimeline, open_run

from .trails import HOSTILE, Recording, small_run

Patch = pytest.MonkeyPatch


def trace(timeline: RunTimeline) -> list[dict[str, Any]]:
    out = io.StringIO()
    perfetto.write(timeline, out)
    document = json.loads(out.getvalue(), parse_constant=pytest.fail)
    events: list[dict[str, Any]] = document["traceEvents"]
    return events


def test_phases_are_slices_and_events_instants(tmp_path: Path, monkeypatch: Patch) -> None:
    events = trace(small_run(tmp_path, monkeypatch))
    slices = [(e["name"], e["ts"], e["dur"]) for e in events if e["ph"] == "X"]
    assert slices == [("load", 0, 2_000_000), ("train", 2_000_000, 2_000_000)]
    instants = [e for e in events if e["ph"] == "i"]
    assert [e["cat"] for e in instants] == ["load", "move", "meet", "error", "save"]
    move = instants[1]
    assert move["name"] == "model.weight moved cpu -> cuda:0 by to (400 B)"
    assert move["ts"] == 1_000_000
    assert move["args"]["from"] == "cpu"
    assert move["args"]["bytes"] == 400
    assert move["args"]["line"] == "train.py:12 main"
    assert move["args"]["by"] == "torch/nn/modules/module.py:1300 to"


def test_live_bytes_are_counters(tmp_path: Path, monkeypatch: Patch) -> None:
    events = trace(small_run(tmp_path, monkeypatch))
    found = [(e["ts"], e["args"]["bytes"]) for e in events if e["name"] == "live bytes cpu"]
    assert [nbytes for _, nbytes in found] == [0, 400, 0]
    assert [time for time, _ in found] == pytest.approx([0, 500_000, 1_500_000], abs=500)


def test_every_process_and_thread_has_its_name(tmp_path: Path, monkeypatch: Patch) -> None:
    for rank in range(2):
        run = Recording(tmp_path, monkeypatch, f"r{rank}", rank=rank)
        run.did(Did.LOAD, run.storage(), at=1)
        run.thread = "saver"
        run.did(Did.SAVE, run.storage(), at=2)
        run.writer.close()
    events = trace(open_run(tmp_path))
    named = [
        (e["name"], e["pid"], e["args"]["name"]) for e in events if "name" in e.get("args", {})
    ]
    assert named == [
        ("process_name", 1, "rank 0"),
        ("process_name", 2, "rank 1"),
        ("thread_name", 1, "MainThread"),
        ("thread_name", 2, "MainThread"),
        ("thread_name", 1, "saver"),
        ("thread_name", 2, "saver"),
    ]
    tids = [(e["pid"], e["tid"]) for e in events if e["ph"] == "i"]
    assert len(set(tids)) == 4


def test_an_empty_run_and_hostile_text(tmp_path: Path, monkeypatch: Patch) -> None:
    run = Recording(tmp_path, monkeypatch)
    run.thread = HOSTILE
    run.did(Did.PHASE, at=0, facts={"began": HOSTILE})
    facts = {"type": HOSTILE, "seconds": float("inf")}
    run.did(Did.ERROR, run.storage(name=HOSTILE), op=HOSTILE, site=(HOSTILE, 1, ""), facts=facts)
    events = trace(run.read())
    assert [e["name"] for e in events if e["ph"] == "X"] == [HOSTILE]
    (tmp_path / "empty").mkdir()
    assert [e["ph"] for e in trace(Recording(tmp_path / "empty", monkeypatch).read())] == ["M", "M"]
