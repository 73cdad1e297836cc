"""SHD431 in a run in which the process of one rank ended before the others."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.tracer.ranks import reported, together

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="signals of Linux"),
]

PROGRAM = """
import os, signal, sys
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.zeros(4)
dist.all_reduce(total)
if dist.get_rank() == 1:
    {ends}
dist.all_reduce(total)
"""


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        (
            "os.kill(os.getpid(), signal.SIGKILL)",
            "which was killed and last seen at prog.py:8, after its 2nd collective, all_reduce of "
            "float32 4",
        ),
        ("os._exit(7)", "which ended with exit code 7 at prog.py:10"),
        ("sys.exit(5)", "which ended with exit code 5 at prog.py:10"),
        ("{}['lr']", "which failed with KeyError at prog.py:10"),
    ],
    ids=["killed", "_exit", "exit", "failed"],
)
def test_the_rank_that_ended_first_is_named(tmp_path: Path, ends: str, told: str) -> None:
    first = together(tmp_path, PROGRAM.replace("{ends}", ends))[0].stderr
    assert f"cause    SHD431 rank 0 waits here for rank 1, {told}" in first
    assert "error SHD431  prog.py:11  is explained above" in first
    assert f"rank 0 waits here for rank 1, {told}" in " ".join(reported(tmp_path).split())
