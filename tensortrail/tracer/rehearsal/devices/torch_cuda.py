"""`torch.cuda` and `torch.accelerator` answer as on a machine with these devices.

What torch's C++ would answer is put where `torch.cuda` asks for it: its own Python code runs."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from tensortrail.tracer.rehearsal.devices import runtime_errors
from tensortrail.tracer.rehearsal.devices.memory_stats import nested, of_the_host
from tensortrail.tracer.rehearsal.lacks import NotRehearsed
from tensortrail.tracer.rehearsal.operations.simulation import Simulation
from tensortrail.tracer.rehearsal.replacements import Replacements
from tensortrail.tracer.rehearsal.streams import streams as simulated
from tensortrail.tracer.rehearsal.streams.current_stream import Streams, Within

NAME = "Simulated GPU"
CAPABILITY = (9, 0)
VERSION = "12.8"
"""For a torch that was built without. Libraries compare it with their own: torchvision refuses
to be imported beside a torch of another one."""
CUDNN = 91002
Functions = dict[str, Callable[..., Any]]


def install(simulation: Simulation, replaced: Replacements) -> None:
    device = _device(simulation)
    streams = simulation.streams
    for name, function in {**device, **_memory(simulation), **_rest(simulation)}.items():
        replaced.put(torch._C, f"_cuda_{name}", function)
    for name, function in _accelerator(simulation, device, streams).items():
        replaced.put(torch._C, name, function)
    for name, value in _python(simulation, device, streams).items():
        replaced.put(torch.cuda, name, value)
    runtime = _runtime(simulation)
    replaced.put(torch.cuda, "_cudart", runtime)
    replaced.put(torch.cuda.graphs, "_cuda_isCurrentStreamCapturing", lambda: False)
    replaced.put(torch.cuda.nvtx, "_nvtx", _marks())
    activities = {torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA}
    replaced.put(torch.autograd.profiler, "_supported_activities", lambda: activities)
    replaced.put(torch.version, "cuda", torch.version.cuda or VERSION)
    replaced.put(torch.backends.cuda, "is_built", lambda: True)
    replaced.put(torch.backends.cudnn, "is_acceptable", lambda tensor: False)
    replaced.put(torch.backends.cudnn, "version", lambda: CUDNN)
    replaced.put(torch.backends.cudnn, "is_available", lambda: True)
    for owner in (torch.cuda, torch.cuda.graphs):
        replaced.put(owner, "CUDAGraph", Graph)
        replaced.put(owner, "graph_pool_handle", lambda: (0, 0))
    if hasattr(torch.accelerator, "Graph"):
        replaced.put(torch.accelerator, "Graph", Graph)
    for owner in (torch._C, torch.cuda):
        replaced.put(owner, "_CudaDeviceProperties", Properties)
    replaced.put(torch.cuda.nccl, "is_available", lambda tensors: False)
    replaced.put(torch.cuda, "StreamContext", Within)
    simulated.install(simulation, replaced)


class Properties(SimpleNamespace):
    """`torch._C._CudaDeviceProperties`"""

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, "
            f"multi_processor_count={self.multi_processor_count}, uuid={self.uuid}, "
            f"pci_bus_id={self.pci_bus_id}, pci_device_id={self.pci_device_id}, "
            f"pci_domain_id={self.pci_domain_id}, L2_cache_size={self.L2_cache_size >> 20}MB)"
        )


class Graph:
    """`torch.cuda.CUDAGraph`"""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise NotRehearsed(
            "CUDA graphs are not simulated: a rehearsal runs on the CPU, which records none. "
            "Turn them off for the rehearsal."
        )


def _device(simulation: Simulation) -> Functions:
    def set_device(index: int) -> None:
        if index >= 0:
            simulation.start()
            simulation.device = index

    def exchange(index: int) -> int:
        before = simulation.device
        if index < 0:
            return -1
        simulation.device = index
        return before

    return {
        "init": simulation.start,
        "getDevice": lambda: simulation.device,
        "setDevice": set_device,
        "exchangeDevice": exchange,
        "maybeExchangeDevice": exchange,
        "getDeviceCount": lambda: simulation.count,
        "canDeviceAccessPeer": lambda device, peer: device != peer,
        "synchronize": lambda: simulation.order.host_waits_for_all(simulation.device),
        "ipc_collect": lambda: None,
        "getArchFlags": lambda: f"sm_{CAPABILITY[0]}{CAPABILITY[1]}",
    }


def _memory(simulation: Simulation) -> Functions:
    memory = simulation.memory

    known = simulation.known_to_allocator

    def set_fraction(fraction: float, index: int) -> None:
        memory.usable[known(index)] = int(memory.size * fraction)

    return {
        "memoryStats": lambda index: nested(memory, known(index)),
        "hostMemoryStats": of_the_host,
        "resetPeakMemoryStats": lambda index: memory.reset_peak(known(index)),
        "resetAccumulatedMemoryStats": lambda index: memory.reset_totals(known(index)),
        "emptyCache": lambda *_: None,
        "memorySnapshot": lambda *_: {
            "segments": [],
            "device_traces": [],
            "allocator_settings": {},
        },
        "record_memory_history": lambda *_, **__: None,
        "setMemoryFraction": set_fraction,
        "getMemoryFraction": lambda index: (
            (memory.usable[known(index)] or memory.size) / memory.size
        ),
        "getAllocatorBackend": lambda: "native",
    }


def _rest(simulation: Simulation) -> Functions:
    def tell_of_waits(mode: int) -> None:
        simulation.told_of_waits = mode

    return {
        "get_sync_debug_mode": lambda: simulation.told_of_waits,
        "set_sync_debug_mode": tell_of_waits,
        "getCurrentBlasHandle": lambda: 0,
        "getCurrentSolverHandle": lambda: 0,
        "getCurrentRawStream": lambda index: simulation.streams.current(index).cuda_stream,
        "isCurrentStreamCapturing": lambda: False,
        "sleep": lambda cycles: None,
    }


def _python(simulation: Simulation, device: Functions, streams: Streams) -> dict[str, Any]:
    """Names of `torch.cuda` itself, where its own code would ask the driver."""
    return {
        "_initialized": True,  # what is asked of it before its first use is done at once
        "_queued_calls": [],
        "is_initialized": lambda: simulation.is_started,
        "_cached_device_count": None,
        # Asked before `getDeviceCount` where there is a driver: it tells of those that are there.
        **dict.fromkeys(("_device_count_nvml", "_device_count_amdsmi"), lambda: simulation.count),
        "_exchange_device": device["exchangeDevice"],
        "_maybe_exchange_device": device["maybeExchangeDevice"],
        "_get_device_properties": lambda index: _properties(simulation, index),
        "is_available": lambda: simulation.count > 0,
        "get_arch_list": lambda: [f"sm_{CAPABILITY[0]}{CAPABILITY[1]}"],
        "is_bf16_supported": lambda including_emulation=True: simulation.count > 0,
        "is_tf32_supported": lambda: True,
        "current_stream": streams.current,
        "default_stream": streams.default,
        "set_stream": streams.set_current,
        "stream": Within,
        "utilization": lambda device=None: 0,
        "memory_usage": lambda device=None: 0,
        "device_memory_used": lambda device=None: (
            simulation.memory.bytes[
                simulation.device if device is None else simulation.index_of(device) or 0
            ].current
        ),
        "temperature": lambda device=None: 40,
        "power_draw": lambda device=None: 100_000,
        "clock_rate": lambda device=None: 1980,
    }


def _properties(simulation: Simulation, index: int) -> Properties:
    simulation.checked(index)
    return Properties(
        name=NAME, major=CAPABILITY[0], minor=CAPABILITY[1],
        total_memory=simulation.memory.size, multi_processor_count=132, warp_size=32,
        is_integrated=False, is_multi_gpu_board=False, max_threads_per_multi_processor=2048,
        max_threads_per_block=1024, gcnArchName="", regs_per_multiprocessor=65536,
        shared_memory_per_block=49152, shared_memory_per_block_optin=232448,
        shared_memory_per_multiprocessor=233472, L2_cache_size=50 * 2**20,
        uuid=f"00000000-0000-0000-0000-{index:012d}", clock_rate=1_980_000,
        memory_clock_rate=2_619_000, memory_bus_width=5120,
        pci_bus_id=index, pci_device_id=0, pci_domain_id=0,
    )  # fmt: skip


def _runtime(simulation: Simulation) -> Any:
    memory = simulation.memory

    def free_and_total(index: int) -> tuple[int, int]:
        used = memory.bytes[simulation.checked(index)].current
        return max(0, memory.size - used), memory.size

    return SimpleNamespace(
        cudaMemGetInfo=free_and_total,
        cudaProfilerStart=lambda: 0,
        cudaProfilerStop=lambda: 0,
        cudaHostRegister=lambda *_: 0,
        cudaHostUnregister=lambda *_: 0,
        cudaError=runtime_errors.Error,
        cudaGetErrorString=runtime_errors.told,
    )


def _marks() -> Any:
    """Marks for a profiler that is not there."""
    return SimpleNamespace(
        rangePushA=lambda text: 0,
        rangePop=lambda: 0,
        rangeStartA=lambda text: 0,
        rangeEnd=lambda number: None,
        markA=lambda text: None,
    )


def _accelerator(simulation: Simulation, device: Functions, streams: Streams) -> Functions:
    stats, order = _memory(simulation), simulation.order

    def here() -> torch.device:
        return torch.device("cuda")

    answers: Functions = {
        "getAccelerator": here,
        "getDeviceIndex": device["getDevice"],
        "setDeviceIndex": device["setDevice"],
        "exchangeDevice": device["exchangeDevice"],
        "maybeExchangeDevice": device["maybeExchangeDevice"],
        "getStream": streams.current,
        "setStream": streams.set_current,
        "synchronizeDevice": lambda index: order.host_waits_for_all(simulation.checked(index)),
        "isAllocatorInitialized": lambda: True,
        "emptyCache": lambda *_: None,
        "emptyHostCache": lambda *_: None,
        "getDeviceStats": stats["memoryStats"],
        "resetAccumulatedStats": stats["resetAccumulatedMemoryStats"],
        "resetPeakStats": stats["resetPeakMemoryStats"],
        "getMemoryInfo": _runtime(simulation).cudaMemGetInfo,
    }
    known = {f"_accelerator_{name}": answer for name, answer in answers.items()}
    return {"_get_accelerator": lambda check=None: here(), **known}
