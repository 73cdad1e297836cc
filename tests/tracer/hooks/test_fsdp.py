"""FSDP2 over two ranks, of which one is here: what its steps tell, with the mode off for most."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from tensortrail.rules import Did
from tensortrail.tracer.reading.timeline import RunTimeline
from tests.rules.recorded import record

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without distributed"),
]
MODEL = """\
import torch
from torch.distributed.fsdp import fully_shard
model = torch.nn.Linear(4, 4)
"""
STEP = "fully_shard(model)\nmodel(torch.ones(2, 4)).sum().backward()\n"
HOOKED = """\
fully_shard(model)
def freed(weight):
    torch.zeros(2)
    weight.grad = None
model.weight.register_post_accumulate_grad_hook(freed)
model(torch.ones(2, 4)).sum().backward()
"""


@pytest.fixture
def two_ranks() -> Iterator[None]:
    fake = pytest.importorskip("torch.testing._internal.distributed.fake_pg")
    store = fake.FakeStore()
    torch.distributed.init_process_group("fake", rank=0, world_size=2, store=store)
    yield
    torch.distributed.destroy_process_group()


def recorded(folder: Path, source: str) -> RunTimeline:
    _, timeline, error = record(folder, MODEL + source)
    assert error is None
    return timeline


def lines(timeline: RunTimeline, did: Did, op: str) -> list[int]:
    found = (each for each in timeline.events(did) if each.op == op)
    return [each.site.line for each in found if each.site]


def line_of(source: str, part: str) -> int:
    return next(n for n, line in enumerate((MODEL + source).splitlines(), 1) if part in line)


def test_memory_and_collectives_of_a_step(two_ranks: None, tmp_path: Path) -> None:
    timeline = recorded(tmp_path, STEP)
    assert lines(timeline, Did.CREATE, "torch.empty")[-3:] == [line_of(STEP, "backward")] * 3
    collectives = [each.op for each in timeline.events(Did.COLLECTIVE)]
    assert [op.rpartition("_")[0] for op in collectives][-2:] == ["all_gather", "reduce_scatter"]
    assert not list(timeline.events(Did.UNWRITTEN))


def test_what_a_hook_of_the_program_does(two_ranks: None, tmp_path: Path) -> None:
    timeline = recorded(tmp_path, HOOKED)
    assert lines(timeline, Did.CREATE, "torch.zeros") == [line_of(HOOKED, "zeros")]
