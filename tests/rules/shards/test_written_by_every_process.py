"""SHD436: saves that every process comes to, through functions and files of the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import lines, severities_in_project, severity

WARNING = Severity.WARNING


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("f'{self.folder}/{epoch}.pt'", WARNING),
        ("self.folder + '/last.pt'", WARNING),
        ("self.named(epoch)", None),
        ("f'{self.own}/{epoch}.pt'", None),
    ],
)
def test_what_the_name_of_the_file_is_made_of(path: str, expected: Severity | None) -> None:
    source = f"""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    class Trainer:
        def __init__(self, net, folder):
            self.model = DistributedDataParallel(net)
            self.folder = folder
            self.own = f"{{folder}}/{{dist.get_rank()}}"

        def save(self, epoch):
            torch.save(self.model.module.state_dict(), {path})

        def train(self, loader, epochs):
            for epoch in range(epochs):
                for x in loader:
                    self.model(x).sum().backward()
                self.save(epoch)
    """
    assert severity("SHD436", source) is expected


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("def save(self):\n        self.write()", [WARNING]),
        ("@first_only\n    def save(self):\n        self.write()", []),
        ("def save(self):\n        if self.leads:\n            self.write()", []),
    ],
)
def test_the_method_of_a_base_in_another_file(
    tmp_path: Path, method: str, expected: list[Severity]
) -> None:
    base = f"""
import torch
import torch.distributed as dist
from net.once import first_only

class Base:
    folder = "out"

    @property
    def leads(self):
        return dist.get_rank() == 0

    def write(self):
        torch.save(self.model.module.state_dict(), f"{{self.folder}}/last.pt")

    {method}
"""
    trainer = """
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from net.base import Base

class Trainer(Base):
    def fit(self, net, loader):
        dist.init_process_group("nccl")
        self.model = DistributedDataParallel(net)
        for x in loader:
            self.model(x).sum().backward()
        self.save()
"""
    once = """
import torch.distributed as dist

def first_only(function):
    return lambda *given: function(*given) if dist.get_rank() == 0 else None
"""
    files = {"base.py": base, "trainer.py": trainer, "once.py": once}
    assert severities_in_project(tmp_path, files, "SHD436") == expected


@pytest.mark.parametrize(("given", "expected"), [("'last.pt'", [6]), ("own(rank)", [])])
def test_the_name_that_a_helper_is_given(given: str, expected: list[int]) -> None:
    source = f"""
    import torch
    import deepspeed

    def keep(model, path):
        torch.save(model.state_dict(), path)

    def train(model, config, loader, rank):
        engine, *_ = deepspeed.initialize(model=model, config=config)
        for x in loader:
            engine.backward(engine(x))
            engine.step()
        keep(engine.module, {given})
    """
    assert [line for line, _ in lines("SHD436", source)] == expected


@pytest.mark.parametrize(
    ("what", "expected"), [("accelerator.unwrap_model(model)", Severity.NOTE), ("tokenizer", None)]
)
def test_a_tokenizer_is_small(what: str, expected: Severity | None) -> None:
    source = f"""
    from accelerate import Accelerator

    def main(model, tokenizer, args):
        accelerator = Accelerator()
        model = accelerator.prepare(model)
        {what}.save_pretrained(args.output)
    """
    assert severity("SHD436", source) is expected


@pytest.mark.parametrize("asked", ["self.folder is None", "self.logger.idle", "self.steps > 9"])
def test_what_one_process_may_have_alone(asked: str) -> None:
    source = f"""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    class Trainer:
        def __init__(self, net, folder):
            self.model = DistributedDataParallel(net)
            self.folder, self.steps = folder, 0

        def save(self):
            if {asked}:
                return
            torch.save(self.model.module.state_dict(), self.folder + "/last.pt")

        def train(self, loader):
            for x in loader:
                self.model(x).sum().backward()
            self.save()
    """
    assert severity("SHD436", source) is (WARNING if "steps" in asked else None)
