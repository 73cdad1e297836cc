"""What a process group of nccl refuses, by one rank alone."""

from __future__ import annotations

from tests.tracer.rehearsal.programs import Refused

BEGIN = """\
import torch.distributed as dist
there.sum()
dist.init_process_group({}, store=dist.HashStore(), rank=0, world_size=1)
try:
    {}
finally:
    dist.destroy_process_group()
"""
NO_BACKEND = "No backend type associated with device type cpu"


def _refused(name: str, call: str, says: str, kind: str = "", backend: str = '"nccl"') -> Refused:
    cause = "" if kind else "collective-without-backend"
    return Refused(name, BEGIN.format(backend, call), says, cause, kind or "RuntimeError")


COLLECTIVES = (
    _refused("nccl and a tensor of the CPU", "dist.all_reduce(here)", NO_BACKEND),
    _refused(
        "no backend named and a tensor of the CPU", "dist.all_reduce(here)", NO_BACKEND, "", "None"
    ),
    _refused(
        "nccl and objects on the CPU",
        'dist.broadcast_object_list([1], 0, device=torch.device("cpu"))',
        NO_BACKEND,
    ),
    _refused(
        "nccl and strides",
        "dist.all_reduce(torch.ones(2, 3, device=G).t())",
        "Tensors must be contiguous",
        "ValueError",
    ),
    _refused(
        "nccl and short integers",
        "dist.all_reduce(there.to(torch.int16))",
        "Input tensor data type is not supported for NCCL process group: Short",
        "TypeError",
    ),
)
