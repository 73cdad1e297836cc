from __future__ import annotations

import os
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shards._every_process import Written, written_by_every_process, written_here
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line


class WrittenByEveryProcess(Rule):
    """Every process of a distributed run writes the same file.

    ## What it does
    Reports `torch.save`, `save_file` and `save_pretrained` that every process comes to, if no
    condition on the way tests the rank, and nothing in the file name differs between processes. It
    stands in a function that makes the process group, calls a collective, or prepares, wraps or
    trains a model for several processes (`DistributedDataParallel`, accelerate, DeepSpeed, Fabric),
    or in a function or method of the project that such a function calls.

    Reported as a note: `save_pretrained`, as every process writes the same.

    Not reported: a file name that depends on an argument of which nothing is known, as the caller
    may give each process its own; a function that the file calls only under a condition on the
    rank, or that has a decorator; `save_pretrained` with `is_main_process`.

    ## Why is this bad?
    The file is damaged where two processes write at once, and this shows only when it is read:
    "PytorchStreamReader failed", "unexpected EOF". Each process opens the file and writes all of
    it.

    ## Fix safety
    No fix is offered: the lines around the save may be for one process too. Put it under
    `if torch.distributed.get_rank() == 0:`, and keep collectives and the state dict of a sharded
    model out of that block.

    ## References
    - pytorch tutorial on DistributedDataParallel: save in one process, load in all
    """

    code = "SHD436"
    name = "written-by-every-process"
    since = "0.2.0"
    severity = Severity.WARNING
    confidence = Confidence.MEDIUM
    triggers = (("distributed", "save"), "init_process_group", "DistributedDataParallel",
                ("ccelerat", ".prepare"), "deepspeed.initialize", ("Fabric", ".setup"))  # fmt: skip
    bad = (
        Bad(
            """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

def main(local, model, loader, epochs):
    dist.init_process_group("nccl")
    model = DDP(model.to(local), device_ids=[local])
    for epoch in range(epochs):
        for x in loader:
            model(x.to(local)).sum().backward()
        torch.save(model.module.state_dict(), f"epoch_{epoch}.pt")
""",
            lines=(11,),
            instead="""\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

def main(local, model, loader, epochs):
    dist.init_process_group("nccl")
    model = DDP(model.to(local), device_ids=[local])
    for epoch in range(epochs):
        for x in loader:
            model(x.to(local)).sum().backward()
        if dist.get_rank() == 0:
            torch.save(model.module.state_dict(), f"epoch_{epoch}.pt")
""",
        ),
        Bad(
            """\
import os
import torch
import torch.distributed as dist

def keep(model, args, step):
    state = {"model": model.module.state_dict(), "step": step}
    torch.save(state, os.path.join(args.output, "last.pt"))
    dist.barrier()
""",
            lines=(7,),
        ),
        Bad(
            """\
import torch
import torch.distributed as dist

def main():
    dist.init_process_group("nccl")
    model = torch.nn.Linear(2, 2).cuda()
    torch.save(model.state_dict(), "last.pt")

if __name__ == "__main__":
    main()
""",
            lines=(7,),
        ),
        Bad(
            """\
import os
import torch
from torch.nn.parallel import DistributedDataParallel

class Trainer:
    def __init__(self, net, folder):
        self.model = DistributedDataParallel(net)
        self.folder = folder

    def save(self, epoch):
        path = os.path.join(self.folder, f"epoch_{epoch}.pt")
        torch.save(self.model.module.state_dict(), path)

    def train(self, loader, epochs):
        for epoch in range(epochs):
            for x in loader:
                self.model(x).sum().backward()
            self.save(epoch)
""",
            lines=(12,),
        ),
        Bad(
            """\
from torch.nn.parallel import DistributedDataParallel

from files import keep

def main(net, loader):
    model = DistributedDataParallel(net.cuda())
    for x in loader:
        model(x).sum().backward()
    keep(model.module, "last.pt")
""",
            lines=(9,),
            files={
                "files.py": """\
import torch

def keep(model, path):
    torch.save(model.state_dict(), path)
"""
            },
        ),
        Bad(
            """\
from accelerate import Accelerator

def main(model, loader, optimizer, args):
    accelerator = Accelerator()
    model, loader, optimizer = accelerator.prepare(model, loader, optimizer)
    for batch in loader:
        accelerator.backward(model(batch).loss)
        optimizer.step()
    accelerator.unwrap_model(model).save_pretrained(args.output_dir)
""",
            lines=(9,),
            instead="""\
from accelerate import Accelerator

def main(model, loader, optimizer, args):
    accelerator = Accelerator()
    model, loader, optimizer = accelerator.prepare(model, loader, optimizer)
    for batch in loader:
        accelerator.backward(model(batch).loss)
        optimizer.step()
    accelerator.unwrap_model(model).save_pretrained(
        args.output_dir, is_main_process=accelerator.is_main_process
    )
""",
        ),
    )
    good = (
        Good(
            """\
import torch
import torch.distributed as dist

def keep(pred, alone, model):
    if not alone:
        dist.barrier()
    if alone:
        torch.save(pred, "pred.pt")
"""
        ),
        Good(
            """\
import torch
import torch.distributed as dist

def keep(model, folder, rank):
    torch.save(model.state_dict(), f"{folder}/model_{rank}.pt")
    dist.barrier()
"""
        ),
        Good(
            """\
import torch
import torch.distributed as dist

def keep(model, path):
    torch.save(model.state_dict(), path)
    dist.barrier()
"""
        ),
        Good(
            """\
import torch
import torch.distributed as dist

def keep(model, args):
    dist.barrier()
    if dist.get_rank() != 0:
        return
    torch.save(model.state_dict(), args.output)
"""
        ),
        Good(
            """\
import os
import torch
import torch.distributed as dist

def is_first(args):
    return args.rank == 0

def main(args, net):
    dist.init_process_group("nccl")
    args.rank = dist.get_rank()
    args.saves = args.folder is not None and is_first(args)
    if args.saves:
        torch.save(net.state_dict(), os.path.join(args.folder, "last.pt"))
"""
        ),
        Good(
            """\
import torch
import torch.distributed as dist

class Trainer:
    def __init__(self, model, folder):
        self.model, self.folder = model, folder

    def save(self):
        torch.save(self.model.state_dict(), f"{self.folder}/best.pt")
        dist.barrier()

    def train(self, steps):
        for step in range(steps):
            if dist.get_rank() == 0 and step % 100 == 0:
                self.save()
"""
        ),
        Good(
            """\
import functools
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

def in_the_first(function):
    @functools.wraps(function)
    def inner(*args):
        if dist.get_rank() == 0:
            function(*args)
    return inner

class Trainer:
    def __init__(self, net, folder):
        self.model = DistributedDataParallel(net)
        self.folder, self.own = folder, f"{folder}/rank{dist.get_rank()}"

    @property
    def writes(self):
        return dist.get_rank() == 0

    @in_the_first
    def save(self, epoch):
        torch.save(self.model.module.state_dict(), f"{self.folder}/{epoch}.pt")

    def keep(self, epoch):
        if self.writes:
            torch.save(self.model.module.state_dict(), f"{self.folder}/{epoch}.pt")
        torch.save(epoch, f"{self.own}/{epoch}.pt")

    def train(self, loader, epochs):
        for epoch in range(epochs):
            for x in loader:
                self.model(x).sum().backward()
            self.save(epoch)
            self.keep(epoch)
"""
        ),
        Good(
            """\
import torch
import torch.distributed as dist

class Coarse:
    def save(self, folder):
        torch.save(self.model.state_dict(), f"{self.folder}/coarse.pt")
        dist.barrier()

    def train(self):
        if dist.get_rank() == 0:
            self.save(self.folder)

class Fine:
    def save(self, folder):
        torch.save(self.model.state_dict(), f"{self.folder}/fine.pt")
        dist.barrier()

    def train(self):
        if dist.get_rank() == 0:
            self.save(self.folder)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if not in_tests(module):
            for each in written_by_every_process(module):
                yield self._reported(module, each)

    def _reported(self, module: Module, found: Written) -> Finding:
        together, write = one_line(module, found.together.func), found.write
        is_here = write.path == module.path
        called = one_line(module, found.call.func)
        by = "" if is_here else f" in line {write.line} of {os.path.basename(write.path)}"
        return self.finding(
            module,
            written_here(module, found) or found.call,
            f"every process writes `{write.shown}`{by}: nothing before it tests the "
            f"rank, and all of them run `{together}` in line {found.together.lineno}",
            severity=Severity.NOTE if write.is_pretrained else Severity.WARNING,
            told=True,
            trail=[
                (found.together, "all processes run this"),
                (found.call, f"and `{called}`, which writes the file"),
            ],
        )
