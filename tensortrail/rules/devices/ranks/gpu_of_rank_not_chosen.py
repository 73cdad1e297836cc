from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.named.named_gpus import is_cuda_literal
from tensortrail.rules.devices.shared.named.written import written_literals
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, given

_MAKES = "init_process_group"
_SPREADS = (
    "DistributedDataParallel",
    "FullyShardedDataParallel",
    "fully_shard",
    "torch.multiprocessing.spawn",
)
"""Where a framework starts the processes, it often hides all GPUs but one from each."""
_BY_NUMBER = frozenset({"device_id", "device_ids", "index"})
_IN_TEXT = ("cuda:", "CUDA_VISIBLE_DEVICES")


class GpuOfRankNotChosen(Rule):
    """A process joins an NCCL group and uses the current GPU, which it never chose.

    ## What it does
    Reports the first `.cuda()`, `.to("cuda")` or `device="cuda"` in a file that

    - makes a process group of NCCL; and
    - wraps a model in DDP or FSDP, or starts the processes itself; and
    - nowhere chooses a GPU for its process: by `torch.cuda.set_device`, `cuda:{rank}`, `.to(rank)`,
      `device_id` or `CUDA_VISIBLE_DEVICES`.

    ## Why is this bad?
    NCCL refuses the group, or memory runs out: without a choice, the current GPU is the first one,
    so all processes of a machine put their models on GPU 0.

    ## Fix safety
    No fix is offered: only the launcher knows which number belongs to the process.

    ## References
    - pytorch/pytorch documentation of `torch.nn.parallel.DistributedDataParallel`
    """

    code = "DEV580"
    name = "gpu-of-rank-not-chosen"
    severity = Severity.WARNING
    proven = False
    triggers = (("init_process_group", "cuda"),)

    bad = (
        Bad(
            """\
import torch
import torch.distributed as dist


def main(rank, world):
    dist.init_process_group("nccl", rank=rank, world_size=world)
    model = torch.nn.Linear(4, 4).cuda()
    return torch.nn.parallel.DistributedDataParallel(model)
""",
            lines=(7,),
            instead="""\
import torch
import torch.distributed as dist


def main(rank, world):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world)
    model = torch.nn.Linear(4, 4).cuda()
    return torch.nn.parallel.DistributedDataParallel(model)
""",
        ),
        Bad(
            """\
import torch


def start():
    torch.distributed.init_process_group(backend="nccl")
    train(torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4)))


def train(model):
    return model(torch.zeros(4, device="cuda"))
""",
            lines=(10,),
        ),
    )
    good = (
        Good(
            """\
import torch
import torch.distributed as dist


def main(rank, world):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world)
    return torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4).cuda())
"""
        ),
        Good(
            """\
import torch
import torch.distributed as dist


def main(rank, world):
    dist.init_process_group("nccl", rank=rank, world_size=world)
    return torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4).cuda(rank))
"""
        ),
        Good(
            """\
import torch
import torch.distributed as dist


def main(rank, world):
    dist.init_process_group("gloo", rank=rank, world_size=world)
    return torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4).cuda())
"""
        ),
        Good(
            """\
import torch
import torch.distributed as dist


def probe():
    dist.init_process_group("nccl")
    return torch.zeros(1, device="cuda")
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        group = next((each for each in module.calls(_MAKES) if _is_of_nccl(module, each)), None)
        if group is None or _is_chosen(module) or not any(module.calls(*_SPREADS)):
            return
        used = next(
            (call for each in functions(module) for call, _ in written_literals(module, each)), None
        )
        if used is not None:
            yield self.finding(
                module,
                used,
                "every process of the group works on the first GPU: the file makes an NCCL group "
                "and never chooses a GPU for its process",
                trail=[(group, "the group is made here")],
            )


def _is_of_nccl(module: Module, call: ast.Call) -> bool:
    backend = module.argument(call, 0, "backend")
    return backend is not None and "nccl" in str(module.value_of(backend).constant)


def _is_chosen(module: Module) -> bool:
    """Some call sets the device or names one by its number."""
    return (
        any(True for _ in module.calls("set_device", "torch.cuda.device"))
        or any(each.arg in _BY_NUMBER for each in module.nodes(ast.keyword))
        or any(_names_a_number(each) for each in module.nodes(ast.Constant))
        or any(_is_numbered(module, each) for each in module.calls("cuda", "torch.device", "to"))
    )


def _names_a_number(node: ast.Constant) -> bool:
    """`"cuda:0"`, the first part of `f"cuda:{rank}"`, the variable that hides other GPUs."""
    return isinstance(node.value, str) and any(each in node.value for each in _IN_TEXT)


def _is_numbered(module: Module, call: ast.Call) -> bool:
    """`x.cuda(rank)`, `x.to(rank)`, `torch.device("cuda", rank)`: what may be any GPU."""
    if called(call) == "device":
        return len(call.args) > 1
    return any(not _is_no_number(module, each) for each in given(call))


def _is_no_number(module: Module, said: ast.expr) -> bool:
    """A dtype, `True`, `"cpu"`, or a device that the code writes without a number."""
    if isinstance(said, ast.Constant):
        return not isinstance(said.value, int) or isinstance(said.value, bool)
    return module.qualified(said).startswith("torch.") or is_cuda_literal(module, said)
