"""Two processes with a simulated GPU each: replicated, sharded, parallel; gloo stands for nccl."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tests import warm  # noqa: E402
from tests.tracer.ranks import of_rank, shared_environment  # noqa: E402

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without distributed"),
]
SCRIPT = Path(__file__).with_name("two_ranks.py")


def rehearsed(folder: Path, *arguments: str) -> list[str]:
    """What both ranks print, each under `tensortrail trace`."""
    command = ["-m", "tensortrail", "trace", "--rehearse", "cuda:2", "--directory"]
    shared = shared_environment()
    programs = [
        ([*command, f"rank-{rank}", str(SCRIPT), *arguments], shared | of_rank(rank))
        for rank in range(2)
    ]
    return [done.stdout + done.stderr for done in warm.together(programs, folder, timeout=100)]


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
