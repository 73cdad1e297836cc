"""XFR616, `workers-alike`: workers that draw the same numbers or read the same stream."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.recorded import watched

CODE = "XFR616"
NOISY = """\
import random
import torch
from torch.utils.data import DataLoader, Dataset
class Noisy(Dataset):
    def __init__(self):
        {made}
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return torch.ones(2) * {drawn}
def seed(number):
    torch.utils.data.get_worker_info().dataset.source.{seeds}(number)
batches = list(DataLoader(Noisy(), batch_size=2, num_workers=2{more}))
"""
TORCH = {
    "made": "self.source = torch.Generator().manual_seed(0)",
    "drawn": "torch.rand(1, generator=self.source)",
    "seeds": "manual_seed",
}
PYTHON = {
    "made": "self.source = random.Random(0)",
    "drawn": "self.source.random()",
    "seeds": "seed",
}


@pytest.mark.parametrize("form", [TORCH, PYTHON])
def test_a_generator_that_every_worker_copies(form: dict[str, str], tmp_path: Path) -> None:
    form = {**form, "made": f"{form['made']}  # flagged"}
    message = watched(tmp_path, NOISY.format(**form, more=""), CODE).only.message
    assert message.startswith("2 workers draw the same numbers: each has a copy of the `Noisy`")


@pytest.mark.parametrize(("form", "more"), [
    (TORCH, ", worker_init_fn=seed"),
    ({**TORCH, "drawn": "torch.rand(1)"}, ""),
])  # fmt: skip
def test_workers_with_seeds_of_their_own(form: dict[str, str], more: str, tmp_path: Path) -> None:
    assert not watched(tmp_path, NOISY.format(**form, more=more), CODE).found


STREAM = """\
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info
class Lines(IterableDataset):
    def __iter__(self):{mark}
        info = {info}
        first, step = (info.id, info.num_workers) if info else (0, 1)
        yield from map(torch.tensor, range(first, 8, step))
samples = [each for batch in DataLoader(Lines(), 2, num_workers={workers}) for each in batch]
"""


def test_a_stream_that_every_worker_reads(tmp_path: Path) -> None:
    source = STREAM.format(info="None", workers=2, mark="  # flagged")
    message = watched(tmp_path, source, CODE).only.message
    assert message.startswith(
        "each of 2 workers gives all of `Lines`, so that every sample comes 2"
    )


SHARED = """\
import os
from torch import multiprocessing, tensor
from torch.utils.data import DataLoader, IterableDataset
queue = multiprocessing.Queue()
{fill}
class Lines(IterableDataset):
    def __iter__(self):
        {gives}
samples = list(DataLoader(Lines(), 2, num_workers=2))
"""
BY_PROCESS = "yield from (tensor([os.getpid(), each]) for each in range(4))"
BY_QUEUE = "yield from (tensor(queue.get()) for _ in range(4))"


@pytest.mark.parametrize(
    ("fill", "gives"), [("", BY_PROCESS), ("for each in range(8): queue.put(each)", BY_QUEUE)]
)
def test_a_stream_that_parts_itself_in_another_way(fill: str, gives: str, tmp_path: Path) -> None:
    assert not watched(tmp_path, SHARED.format(fill=fill, gives=gives), CODE).found


def test_the_rank_of_the_process_parts_no_workers(tmp_path: Path) -> None:
    gives = 'yield from map(tensor, range(int(os.environ.get("RANK", 0)), 8))'
    source = SHARED.format(fill="", gives=gives).replace("(self):", "(self):  # flagged")
    assert watched(tmp_path, source, CODE).found


@pytest.mark.parametrize(("info", "workers"), [("get_worker_info()", 2), ("None", 1)])
def test_a_stream_with_shares_or_one_worker(info: str, workers: int, tmp_path: Path) -> None:
    assert not watched(tmp_path, STREAM.format(info=info, workers=workers, mark=""), CODE).found
