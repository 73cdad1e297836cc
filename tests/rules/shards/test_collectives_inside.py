"""SHD431 of calls that come to a collective in the project, and of libraries that wait for all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import lines, severities_in_project, severity

NOTE = Severity.NOTE


@pytest.mark.parametrize(
    ("guard", "expected"),
    [("dist.is_initialized()", NOTE), ("dist.get_world_size() > 1", NOTE), ("self.shared", None)],
)
def test_a_method_that_makes_a_collective_in_any_run(guard: str, expected: Severity | None) -> None:
    source = f"""
    import torch.distributed as dist

    class Meter:
        def read(self):
            if {guard}:
                dist.all_reduce(self.total)
            return self.total

    def report(meter: Meter, rank):
        if rank == 0:
            print(meter.read())
    """
    assert severity("SHD431", source) is expected


@pytest.mark.parametrize(("other", "expected"), [("pass", [NOTE]), ("dist.all_reduce(loss)", [])])
def test_a_function_of_another_file_calls_one_that_makes_it(
    tmp_path: Path, other: str, expected: list[Severity]
) -> None:
    averages = """
import torch.distributed as dist

def averaged(value):
    return summed(value) / dist.get_world_size()

def summed(value):
    dist.all_reduce(value)
    return value
"""
    train = f"""
import torch.distributed as dist
from net.averages import averaged

def log(loss):
    if dist.get_rank() == 0:
        print(averaged(loss))
    else:
        {other}
"""
    files = {"averages.py": averages, "train.py": train}
    assert severities_in_project(tmp_path, files, "SHD431") == expected


@pytest.mark.parametrize("started", ["Process(target=work)", "while True: work()"])
def test_a_worker_answers(started: str) -> None:
    source = f"""
    import torch.distributed as dist
    from multiprocessing import Process

    def together():
        dist.barrier()

    def work():
        together()

    def begin():
        {started}

    def serve(rank):
        if rank == 0:
            together()
    """
    answered = [] if "Process" in started else [(16, NOTE)]
    assert lines("SHD431", source) == answered


@pytest.mark.parametrize(("sender", "unanswered"), [("0", []), ("1", [6])])
def test_the_loop_of_a_worker_receives_what_is_sent(sender: str, unanswered: list[int]) -> None:
    source = f"""
    import torch.distributed as dist

    def send(word, rank):
        if rank == 0:
            dist.broadcast(word, src=0)

    def work(word):
        while word:
            dist.broadcast(word, src={sender})
    """
    assert [line for line, _ in lines("SHD431", source)] == unanswered


@pytest.mark.parametrize("group", ["None, self.group", "group=self.group"])
def test_a_collective_of_a_group(group: str) -> None:
    source = f"""
    import torch.distributed as dist

    class Part:
        def share(self, x, rank):
            if rank == 0:
                dist.all_reduce(x, {group})
    """
    assert severity("SHD431", source) is None


@pytest.mark.parametrize("made", ["FullyShardedDataParallel(net)", "net"])
def test_a_sharded_model_is_run(made: str) -> None:
    source = f"""
    import torch.distributed as dist
    from torch.distributed.fsdp import FullyShardedDataParallel

    class Sampler:
        def __init__(self, net):
            self.model = {made}

        def show(self, prompt):
            if dist.get_rank() == 0:
                print(self.model(prompt))
    """
    assert severity("SHD431", source) is (None if made == "net" else Severity.ERROR)


@pytest.mark.parametrize(
    ("made", "asked", "call"),
    [
        ("Fabric(devices=4)", "runner.global_rank == 0", "all_reduce(x)"),
        ("Fabric(devices=4)", "runner.is_global_zero", "save('last.ckpt', {})"),
        ("Trainer(model=x)", "runner.is_world_process_zero()", "evaluate()"),
    ],
)
def test_what_libraries_wait_for(made: str, asked: str, call: str) -> None:
    source = f"""
    from lightning.fabric import Fabric
    from transformers import Trainer

    def main(x):
        runner = {made}
        if {asked}:
            runner.{call}
    """
    assert severity("SHD431", source) is Severity.ERROR


@pytest.mark.parametrize(
    ("more", "expected"), [("", Severity.ERROR), (", rank_zero_only=True", None)]
)
def test_a_value_that_is_averaged_over_processes(more: str, expected: Severity | None) -> None:
    source = f"""
    import lightning.pytorch as pl

    class Net(pl.LightningModule):
        def validation_step(self, batch, index):
            if self.trainer.is_global_zero:
                self.log("loss", self.loss(batch), sync_dist=True{more})
    """
    assert severity("SHD431", source) is expected


@pytest.mark.parametrize(
    ("asked", "expected"), [("rank == 0", NOTE), ("alone and rank == 0", None)]
)
def test_an_option_by_which_one_process_leaves(asked: str, expected: Severity | None) -> None:
    source = f"""
    import torch.distributed as dist

    def score(x):
        dist.all_reduce(x)

    def main(x, rank, alone):
        if {asked}:
            return
        score(x)
    """
    assert severity("SHD431", source) is expected


def test_a_condition_that_is_made_of_itself() -> None:
    source = """
    import torch.distributed as dist

    def score(x):
        dist.all_reduce(x)

    def main(parts, x, loud):
        for part in parts:
            loud = loud and dist.get_rank() == 0
            if loud:
                score(x)
    """
    assert severity("SHD431", source) is NOTE


@pytest.mark.parametrize(("waits", "expected"), [("gather(x)", NOTE), ("get_state_dict(x)", None)])
def test_an_accelerator_that_waits_with_sharded_models_only(
    waits: str, expected: Severity | None
) -> None:
    source = f"""
    from accelerate import Accelerator

    class Trainer:
        def __init__(self):
            self.accelerator = Accelerator()

        def keep(self, x):
            return self.accelerator.{waits}

        def train(self, x):
            if self.accelerator.is_main_process:
                self.keep(x)
    """
    assert severity("SHD431", source) is expected


@pytest.mark.parametrize(("asked", "expected"), [("!= 0", []), ("== 1", [14, 18])])
def test_another_method_answers(asked: str, expected: list[int]) -> None:
    source = f"""
    import torch.distributed as dist

    def together():
        dist.barrier()

    class FirstThenOthers:
        def __init__(self, rank):
            self.rank = rank

        def __enter__(self):

            if self.rank {asked}:
                together()

        def __exit__(self, *_):
            if {"self.rank == 0" if "!=" in asked else "self.rank == 1"}:
                together()
    """
    assert [line for line, _ in lines("SHD431", source)] == expected
