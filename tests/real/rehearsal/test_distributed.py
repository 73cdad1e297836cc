"""Two processes with a simulated GPU each: replicated, sharded, parallel; gloo stands for nccl."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tests.tracer.ranks import free_port  # noqa: E402

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without distributed"),
]
SCRIPT = Path(__file__).with_name("two_ranks.py")


def rehearsed(folder: Path, *arguments: str) -> list[str]:
    """What both ranks print, each under `tensortrail trace`."""
    shared = {
        **os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
        "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path),
    }  # fmt: skip
    command = [sys.executable, "-m", "tensortrail", "trace", "--rehearse", "cuda:2", "--directory"]
    ranks = [
        subprocess.Popen(
            [*command, f"rank-{rank}", str(SCRIPT), *arguments],
            cwd=folder, env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    return [rank.communicate(timeout=100)[0] for rank in ranks]


@pytest.mark.parametrize(
    ("way", "backend"),
    [
        ("ddp", "nccl"),
        pytest.param("flat", "nccl", marks=pytest.mark.complete),
        pytest.param("fsdp", "gloo", marks=pytest.mark.complete),
        pytest.param("tp", "cpu:gloo,cuda:nccl", marks=pytest.mark.complete),
    ],
)
def test_both_ranks_learn_what_one_cpu_learns(tmp_path: Path, way: str, backend: str) -> None:
    for rank, told in enumerate(rehearsed(tmp_path, way, backend)):
        assert f"rank {rank} agrees with the CPU on cuda:{rank}\n" in told, told
        assert told.count('"gloo" carries its messages') == ("nccl" in backend)
