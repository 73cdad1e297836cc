"""Trails written by hand, with times of one's choosing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tensortrail.rules.timeline import Did
from tensortrail.tracer.reading.timeline import RunTimeline, open_run
from tensortrail.tracer.trail import writer as writing
from tensortrail.tracer.trail.layout import CODE, SUFFIX

Place = tuple[str, int, str]
USER: Place = ("train.py", 12, "main")
LIBRARY: Place = ("torch/nn/modules/module.py", 1300, "to")
NOWHERE: Place = ("", 0, "")
HOSTILE = "</script><img src=x onerror=alert(1)>\n\u2028\x1b[31m'\"<!--\U0001f600\u202e"


class Clock:
    """Stands in for `time` in the writer."""

    def __init__(self) -> None:
        self.micros = 0

    def perf_counter_ns(self) -> int:
        return self.micros * 1000

    def time(self) -> float:
        return 1_800_000_000.0


class Recording:
    """One process's trail."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str = "main", **header: Any
    ) -> None:
        self.clock = Clock()
        monkeypatch.setattr(writing, "time", self.clock)
        header = {"version": 1, "run": "r", "pid": 7, "argv": ["train.py", "--fast"], **header}
        self.path = folder / f"{name}{SUFFIX}"
        first = header.get("first_storage", 1)
        self.writer = writing.TrailWriter(str(self.path), header, 1 << 30, first)
        self.thread, self.phase = "MainThread", ""

    def storage(
        self,
        device: str = "cpu",
        nbytes: int = 100,
        name: str = "",
        dtype: str = "float32",
        shape: tuple[int, ...] = (5, 5),
        kind: str = "",
    ) -> int:
        number = self.writer.storage(device, nbytes, dtype, shape, kind)
        if name:
            self.writer.name(number, name)
        return number

    def did(
        self,
        did: Did,
        storage: int = 0,
        other: int = 0,
        *,
        at: float = -1,
        op: str = "",
        site: Place = USER,
        by: Place = NOWHERE,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        if at >= 0:
            self.clock.micros = round(at * 1e6)
        context = self.writer.context(self.thread, self.phase)
        place = self.writer.site(*site, by) if site[0] or by[0] else 0
        op_text = self.writer.text(op) if op else 0
        self.writer.event(CODE[did], context, place, storage, other, op_text, facts)

    def read(self) -> RunTimeline:
        self.writer.close()
        return open_run(self.path)


def small_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> RunTimeline:
    """A weight is loaded, moved to the accelerator, saved; something fails; one is freed."""
    run = Recording(folder, monkeypatch)
    run.did(Did.PHASE, at=0.0, facts={"began": "load"})
    on_cpu = run.storage("cpu", 400, "model.weight", shape=(10, 10))
    run.did(Did.LOAD, on_cpu, at=0.5, op="load_file", facts={"path": "w.safetensors"})
    on_gpu = run.storage("cuda:0", 400, shape=(10, 10))
    run.did(Did.MOVE, on_gpu, on_cpu, at=1.0, op="to", by=LIBRARY)
    run.did(Did.FREE, on_cpu, at=1.5, site=NOWHERE)
    run.did(Did.PHASE, at=2.0, facts={"ended": "load"})
    run.phase = "train"
    run.did(Did.PHASE, at=2.0, facts={"began": "train"})
    ghost = run.storage("meta", 80, shape=(20,), dtype="bfloat16", kind="Float8Tensor")
    run.did(Did.CREATE, ghost, at=2.5, op="empty")
    run.did(Did.MEET, on_gpu, ghost, at=3.0, op="add", facts={"devices": ["cuda:0", "meta"]})
    facts = {"type": "RuntimeError", "message": "two devices"}
    run.did(Did.ERROR, on_gpu, ghost, at=3.5, op="add", facts=facts)
    run.did(Did.SAVE, on_gpu, at=4.0, op="save", facts={"path": "out.pt", "key": "weight"})
    return run.read()
