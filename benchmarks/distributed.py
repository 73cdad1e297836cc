"""What recording costs a step of FSDP2 over two processes on gloo, beside its peers.

    python benchmarks/distributed.py [--rounds N] [--width N]

Both ranks take the same turns; rank 0 tells the minima of its CPU time, as ratios of one run: on a
busy machine the other rank is waited for.
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from overhead import CONTESTANTS, Work, small
from torch.distributed.fsdp import fully_shard

NAMES = ("nothing", "empty mode", "tensortrail")
STEPS = 4


def training(width: int) -> Work:
    model = small(width)
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    data = torch.randn(4, 32, width)

    def work() -> None:
        for _ in range(STEPS):
            optimizer.zero_grad()
            model(data).square().mean().backward()
            optimizer.step()

    return work


def saving(width: int, folder: Path) -> Work:
    import torch.distributed.checkpoint as dcp

    model = small(width)
    fully_shard(model)

    def work() -> None:
        dcp.save({"model": model.state_dict()}, checkpoint_id=folder / "saved")
        dcp.load({"model": model.state_dict()}, checkpoint_id=folder / "saved")

    return work


def measured(work: Work, rounds: int) -> dict[str, float]:
    best = dict.fromkeys(NAMES, float("inf"))
    for turn in range(rounds):
        for place in range(len(NAMES)):
            name = NAMES[(place + turn) % len(NAMES)]
            dist.barrier()
            with CONTESTANTS[name]():
                work()
                gc.collect()
                dist.barrier()
                before = time.process_time()
                work()
                best[name] = min(best[name], time.process_time() - before)
    return best


def rank(number: int, folder: str, rounds: int, widths: list[int]) -> None:
    torch.set_num_threads(1)
    meeting = f"file://{folder}/meeting"
    dist.init_process_group("gloo", init_method=meeting, rank=number, world_size=2)
    works = {f"FSDP2 step, width {width}": training(width) for width in widths}
    works["DCP save and load"] = saving(64, Path(folder))
    for name, work in works.items():
        best = measured(work, rounds)
        if number == 0:
            ours, empty, nothing = (best[each] for each in reversed(NAMES))
            print(
                f"{name:<24} nothing {nothing * 1e3:8.2f} ms, empty mode {empty / nothing:5.2f}x, "
                f"tensortrail {ours / nothing:5.2f}x, tensortrail / empty mode {ours / empty:.3f}",
                flush=True,
            )
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--width", type=int, action="append")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        arguments = (folder, options.rounds, options.width or [64, 512])
        processes.start_processes(rank, arguments, nprocs=2, start_method="spawn")


if __name__ == "__main__":
    main()
