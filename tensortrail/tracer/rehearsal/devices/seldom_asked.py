"""What programs seldom ask of `torch.cuda` and of torch's other modules about GPUs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._C import _LinalgBackend
from torch.autograd import profiler

from tensortrail.tracer.rehearsal.devices.settings import remembered
from tensortrail.tracer.rehearsal.lacks import NotRehearsed
from tensortrail.tracer.rehearsal.operations.simulation import Simulation
from tensortrail.tracer.rehearsal.replacements import Replacements

NCCL = (2 << 32) | (27 << 16) | 3
COMPILED = 12080
PLANS = 4096
"""How many plans the cache of cuFFT keeps, if nobody says otherwise."""
_pools = itertools.count(1)


def install(simulation: Simulation, replaced: Replacements) -> None:
    for name, function in {**_cuda(simulation), **_raw_memory(simulation)}.items():
        replaced.put(torch._C, f"_cuda_{name}", function)
    replaced.put(torch.cuda, "_is_in_bad_fork", lambda: simulation.is_lost)
    replaced.put(torch._C, "_accelerator_getDeviceCapability", lambda index: _types())
    replaced.put(torch._C, "_nccl_version", lambda: NCCL)
    replaced.put(torch._C, "_nccl_version_suffix", lambda: b"")
    _remembered(replaced, "linalg", _LinalgBackend.Default)
    _remembered(replaced, "blas", torch._C._BlasBackend.Default)
    _plans_of_cufft(replaced)
    _profilers(replaced)
    for owner in (torch.cuda, torch.cuda.memory):
        replaced.put(owner, "MemPool", Pool)
    for name in ("beginAllocateCurrentThreadToPool", "endAllocateToPool", "releasePool"):
        replaced.put(torch.cuda.memory, f"_cuda_{name}", lambda *_: None)


class Pool:
    """`torch.cuda.MemPool`: nothing is cached, so it holds nothing."""

    def __init__(self, allocator: Any = None, **_: Any) -> None:
        self.allocator = allocator
        self.id = (0, next(_pools))

    def use_count(self) -> int:
        return 1

    def snapshot(self, include_traces: bool = True) -> list[Any]:
        return []


def _cuda(simulation: Simulation) -> dict[str, Callable[..., Any]]:
    def from_external(pointer: int, index: int) -> Any:
        raise NotRehearsed("streams of other libraries are not simulated")

    return {
        "getCompiledVersion": lambda: COMPILED,
        "getStreamFromExternal": from_external,
        "resetPeakHostMemoryStats": lambda: None,
        "resetAccumulatedHostMemoryStats": lambda: None,
        **remembered(),
    }


def _raw_memory(simulation: Simulation) -> dict[str, Callable[..., Any]]:
    """`torch.cuda.caching_allocator_alloc`: bytes that count, and are not a tensor's."""
    given: dict[int, Tensor] = {}

    def allocate(size: int, stream: int) -> int:
        made = torch.empty(size, dtype=torch.uint8, device="cuda")
        pointer = int(made.data_ptr())
        given[pointer] = made
        return pointer

    def delete(pointer: int) -> None:
        del given[pointer]

    return {
        "cudaCachingAllocator_raw_alloc": allocate,
        "cudaCachingAllocator_raw_delete": delete,
        "cudaCachingAllocator_enable": lambda on: None,
        "cudaCachingAllocator_is_enabled": lambda: True,
    }


def _types() -> dict[str, Any]:
    known = {each for each in vars(torch).values() if isinstance(each, torch.dtype)}
    return {"supported_dtypes": {each for each in known if not str(each).startswith("torch.q")}}


def _remembered(replaced: Replacements, what: str, begin: Any) -> None:
    """A library that a program prefers: a CPU build has no choice, and refuses to be told."""
    chosen = {"now": begin}
    replaced.put(torch._C, f"_get_{what}_preferred_backend", lambda: chosen["now"])
    replaced.put(
        torch._C, f"_set_{what}_preferred_backend", lambda backend: chosen.update(now=backend)
    )


def _plans_of_cufft(replaced: Replacements) -> None:
    kind = torch.backends.cuda.cuFFTPlanCache
    sizes: dict[int, int] = {}

    def limit(self: Any, size: int) -> None:
        sizes[self.device_index] = size

    replaced.put(kind, "size", property(lambda self: 0))
    replaced.put(
        kind, "max_size", property(lambda self: sizes.get(self.device_index, PLANS), limit)
    )
    replaced.put(kind, "clear", lambda self: None)


def _profilers(replaced: Replacements) -> None:
    """Marks of NVTX, and a profiler that would ask a CPU build to mark the time on a GPU."""
    begin = profiler.profile.__init__

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        if (
            getattr(self, "profiler_kind", None)
            == torch._C._profiler.ProfilerState.KINETO_GPU_FALLBACK
        ):
            self.profiler_kind = torch._C._profiler.ProfilerState.KINETO

    replaced.put(profiler.profile, "__init__", __init__)
    replaced.put(profiler.emit_nvtx, "__enter__", lambda self: self if self.enabled else None)
    replaced.put(profiler.emit_nvtx, "__exit__", lambda self, *_: None)
