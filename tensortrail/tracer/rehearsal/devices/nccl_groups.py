"""A process group made for nccl is carried by gloo, and refuses what nccl would refuse."""

from __future__ import annotations

import functools
import os
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from tensortrail.tracer.rehearsal.devices.spec import VISIBLE
from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor

NCCL = "nccl"
NO_BACKEND = "No backend type associated with device type {}"
DENSE, CONTIGUOUS = "Tensors must be CUDA and dense", "Tensors must be contiguous"
SAME_GPU = (
    "NCCL error in: ProcessGroupNCCL.cpp, invalid usage (run with NCCL_DEBUG=WARN for details), "
    "NCCL version 2.27.3\nncclInvalidUsage: This usually reflects invalid usage of NCCL library."
    "\nLast error:\nDuplicate GPU detected : rank {} and rank {} both on CUDA device {:x}"
)
NO_TYPE = "Input tensor data type is not supported for NCCL process group: {}"
NO_TYPES = {torch.int16: "Short", torch.complex32: "ComplexHalf"}
BARRIER = "barrier"
"""Nccl guesses a GPU for each rank, if the program has used none."""
BETWEEN_TWO = ("send", "recv_")
TAKES_ANY_LAYOUT = (*BETWEEN_TWO, "recv_any_source_", "alltoall_base_")
SPACES = ("c10d", "_c10d_functional")


@dataclass
class Asked:
    """What a program asked for when it made a group."""

    backends: Mapping[str, str]
    """By type of device."""
    rank: int
    size: int
    store: Any = None
    compared: set[int] = field(default_factory=set)
    """The ranks that are known to be on another GPU than this one."""

    def compare(self, index: int, ranks: set[int]) -> None:
        """Raise if one of these ranks brings the GPU that this one brings. As nccl does when it
        connects them, this waits until each of them has called a collective."""
        if not self.compared:
            self.store.set(_key(self.rank), place_of(index))
            self.compared.add(self.rank)
        for rank in sorted(ranks - self.compared):
            if self.store.get(_key(rank)).decode() == place_of(index):
                raise torch.distributed.DistBackendError(
                    SAME_GPU.format(self.rank, rank, (index + 1) << 12)
                )
            self.compared.add(rank)


asked_for: dict[str, Asked] = {}
"""The groups made for nccl, by name."""
_unchecked: list[bool] = []


def _key(rank: int) -> str:
    return f"rehearsed device of rank {rank}"


def place_of(index: int) -> str:
    """The machine and the number of a GPU there, whatever the process calls it."""
    listed = [each.strip() for each in os.environ.get(VISIBLE, "").split(",")]
    number = listed[index] if index < len(listed) and listed[index] else str(index)
    return f"{socket.gethostname()} {os.environ.get('GROUP_RANK', '')} {number}"


def without_checks(function: Any) -> Any:
    """Torch's C++ makes tensors where it believes the program's to be: on the CPU."""

    def called(*args: Any, **kwargs: Any) -> Any:
        _unchecked.append(True)
        try:
            return function(*args, **kwargs)
        finally:
            _unchecked.pop()

    return called


@functools.cache
def is_collective(func: Any) -> bool:
    return func.namespace in SPACES


def check(func: Any, args: Any) -> None:
    """Raise as nccl would for these tensors, and as torch does where no backend takes them."""
    asked = None if _unchecked else _group(args)
    if asked is None:
        return
    name = func._schema.name.partition("::")[2]
    tensors = list(_tensors(args))
    of_gpu = next((each for each in tensors if isinstance(each, SimTensor)), None)
    if of_gpu is None:
        # In a backward pass the reducer's own tensors are among them, which C++ made.
        for tensor in tensors[: int(torch._C._current_graph_task_id() == -1)]:
            if tensor.device.type not in asked.backends:
                raise RuntimeError(NO_BACKEND.format(tensor.device.type))
        return
    if asked.backends.get("cuda") != NCCL:
        return
    for tensor in tensors:
        _check_tensor(tensor, name)
    if name != BARRIER:
        asked.compare(of_gpu.index, {args[2]} if name in BETWEEN_TWO else set(range(asked.size)))


def _check_tensor(tensor: Tensor, name: str) -> None:
    if not isinstance(tensor, SimTensor) or tensor.layout is not torch.strided:
        raise ValueError(DENSE)
    if name not in TAKES_ANY_LAYOUT and not _is_contiguous(tensor):
        raise ValueError(CONTIGUOUS)
    if tensor.dtype in NO_TYPES:
        raise TypeError(NO_TYPE.format(NO_TYPES[tensor.dtype]))


def _is_contiguous(tensor: Tensor) -> bool:
    other = {4: torch.channels_last, 5: torch.channels_last_3d}.get(tensor.dim())
    return tensor.is_contiguous() or (
        other is not None and tensor.is_contiguous(memory_format=other)
    )


def _group(args: Any) -> Asked | None:
    for each in args:
        if isinstance(each, str) and each in asked_for:
            return asked_for[each]
        if isinstance(each, torch.ScriptObject) and "ProcessGroup" in str(each._type()):
            return asked_for.get(torch.distributed.ProcessGroup.unbox(each).group_name)
    return None


def _tensors(value: Any) -> Iterator[Tensor]:
    for each in value:
        if isinstance(each, Tensor):
            yield each
        elif isinstance(each, (list, tuple)):
            yield from _tensors(each)
