"""A run of several ranks, written by hand: one differs, one has no end, one has an exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.rules.timeline import Did
from tensortrail.tracer.trail.last_state import Standing
from tests.tracer.exports.trails import LIBRARY, NOWHERE, Recording

RANKS, ODD, SILENT, GONE = 8, 5, 2, 6
STEPS = 40


def many_ranks_in(folder: Path) -> Path:
    """Every rank moves a weight to its GPU and takes outputs back; one leaves the weight where it
    was and comes late to the others, one has no end, and one ends with an exit code."""
    with pytest.MonkeyPatch.context() as patch:
        for rank in range(RANKS):
            _record(folder, patch, rank)
    return folder


def _record(folder: Path, patch: pytest.MonkeyPatch, rank: int) -> None:
    run = Recording(folder, patch, f"rank-{rank}", rank=rank, local_rank=rank, pid=100 + rank,
                    host="one", torch="2.13", cwd=str(folder))  # fmt: skip
    weight = run.storage("cpu", 4000, "model.weight", shape=(10, 100))
    run.did(Did.CREATE, weight, at=0.0, op="empty", site=("train.py", 3, "main"))
    if rank != ODD:
        gpu = run.storage(f"cuda:{rank}", 4000, shape=(10, 100))
        run.did(Did.MOVE, gpu, weight, at=0.1, op="Tensor.to", site=("train.py", 4, "main"))
    for step in range(STEPS):
        out = run.storage(f"cuda:{rank}", 100)
        run.did(Did.CREATE, out, at=1 + step / 10, op="linear")
        back = run.storage("cpu", 100)
        run.did(Did.MOVE, back, out, op="Tensor.cpu", by=LIBRARY)
        facts = {"number": step + 1, "took": 100 if rank == ODD else 5000 + rank}
        run.did(Did.COLLECTIVE, op="all_reduce", site=("train.py", 15, "main"), facts=facts)
        run.did(Did.FREE, out, site=NOWHERE)
        run.did(Did.FREE, back, site=NOWHERE)
    if rank == ODD:
        run.did(Did.UNWRITTEN, weight, at=9.0, op="linear", site=("train.py", 20, "main"))
    if rank == SILENT:
        run.writer.flush()
        Standing(str(run.path)).began("all_reduce", "train.py", 15)
    else:
        run.writer.outcome = "exit code 3" if rank == GONE else ""
        run.writer.close()
