"""`torch.cuda` and `torch.accelerator` as a machine with these devices has them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from tensortrail.tracer.rehearsal.replacements import Replacements
from tensortrail.tracer.rehearsal.simulation import Simulation
from tensortrail.tracer.rehearsal.streams import Event, Stream, Streams

NAME = "Simulated GPU"
CAPABILITY = (9, 0)
PROCESSORS = 132


def install(simulation: Simulation, replaced: Replacements) -> Streams:
    streams = Streams(simulation)
    functions = _functions(simulation, streams)
    for name, function in functions.items():
        replaced.put(torch.cuda, name, function)
    for name in ("mem_get_info", "memory_allocated", "max_memory_allocated", "memory_stats",
                 "memory_reserved", "max_memory_reserved", "empty_cache",
                 "reset_peak_memory_stats"):  # fmt: skip
        if hasattr(torch.cuda.memory, name):
            replaced.put(torch.cuda.memory, name, functions[name])
    replaced.put(torch.cuda, "Stream", Stream)
    replaced.put(torch.cuda, "Event", Event)
    replaced.put(torch.cuda, "device", _device_context(simulation))
    replaced.put(torch.cuda, "stream", streams.within)
    replaced.put(torch.version, "cuda", "12.8")
    replaced.put(torch.backends.cudnn, "is_acceptable", lambda tensor: False)
    _accelerator(simulation, functions, replaced)
    return streams


def _functions(simulation: Simulation, streams: Streams) -> dict[str, Callable[..., Any]]:
    memory = simulation.memory

    def index(device: Any = None) -> int:
        if device is None:
            return simulation.device
        if isinstance(device, int):
            return simulation.checked(device)
        found = simulation.index_of(device)
        if found is None:
            raise ValueError(f"Expected a cuda device, but got: {device}")
        return found

    def set_device(device: Any) -> None:
        simulation.device = index(device)

    def properties(device: Any = None) -> Any:
        index(device)
        return SimpleNamespace(
            name=NAME, major=CAPABILITY[0], minor=CAPABILITY[1], total_memory=memory.size,
            multi_processor_count=PROCESSORS, warp_size=32, is_integrated=False,
            is_multi_gpu_board=False, max_threads_per_multi_processor=2048, gcnArchName="",
            regs_per_multiprocessor=65536, shared_memory_per_block=49152,
            shared_memory_per_block_optin=232448, L2_cache_size=50 * 2**20, uuid="simulated",
        )  # fmt: skip

    def reset_peak(device: Any = None) -> None:
        memory.reset_peak(index(device))

    def stats(device: Any = None) -> dict[str, int]:
        at = index(device)
        return {
            "allocated_bytes.all.current": memory.allocated[at],
            "allocated_bytes.all.peak": memory.peak[at],
            "reserved_bytes.all.current": memory.allocated[at],
            "reserved_bytes.all.peak": memory.peak[at],
            "allocation.all.allocated": memory.allocations[at],
            "num_alloc_retries": 0,
            "num_ooms": 0,
        }

    def allocated(device: Any = None) -> int:
        return memory.allocated[index(device)]

    def peak(device: Any = None) -> int:
        return memory.peak[index(device)]

    def free_and_total(device: Any = None) -> tuple[int, int]:
        return max(0, memory.size - allocated(device)), memory.size

    def synchronize(device: Any = None) -> None:
        simulation.synchronized(index(device))

    def seed(number: int) -> None:
        torch.default_generator.manual_seed(number)

    return {
        "_lazy_init": lambda: None,
        "init": lambda: None,
        "is_initialized": lambda: True,
        "is_available": lambda: True,
        "device_count": lambda: simulation.spec.count,
        "current_device": lambda: simulation.device,
        "set_device": set_device,
        "get_device_name": lambda device=None: properties(device).name,
        "get_device_properties": properties,
        "get_device_capability": lambda device=None: (index(device), CAPABILITY)[1],
        "can_device_access_peer": lambda device, peer: True,
        "get_arch_list": lambda: ["sm_90"],
        "is_bf16_supported": lambda including_emulation=True: True,
        "is_tf32_supported": lambda: True,
        "synchronize": synchronize,
        "mem_get_info": free_and_total,
        "memory_allocated": allocated,
        "max_memory_allocated": peak,
        "memory_reserved": allocated,
        "max_memory_reserved": peak,
        "memory_stats": stats,
        "reset_peak_memory_stats": reset_peak,
        "reset_max_memory_allocated": reset_peak,
        "empty_cache": lambda: None,
        "ipc_collect": lambda: None,
        "manual_seed": seed,
        "manual_seed_all": seed,
        "seed": torch.default_generator.seed,
        "initial_seed": torch.default_generator.initial_seed,
        "get_rng_state": lambda device="cuda": torch.default_generator.get_state(),
        "get_rng_state_all": lambda: [torch.default_generator.get_state()] * simulation.spec.count,
        "set_rng_state": lambda state, device="cuda": torch.default_generator.set_state(state),
        "set_rng_state_all": lambda states: torch.default_generator.set_state(states[0]),
        "current_stream": streams.current,
        "default_stream": streams.default,
        "set_stream": streams.set_current,
        "utilization": lambda device=None: 0,
    }


def _device_context(simulation: Simulation) -> type:
    class device:
        """Context manager: the current device."""

        def __init__(self, device: Any) -> None:
            self.idx = device if isinstance(device, int) else (simulation.index_of(device) or 0)
            self.prev_idx = -1

        def __enter__(self) -> None:
            self.prev_idx = simulation.device
            if self.idx >= 0:
                simulation.device = self.idx

        def __exit__(self, *_: Any) -> None:
            simulation.device = self.prev_idx

    return device


def _accelerator(
    simulation: Simulation, functions: dict[str, Callable[..., Any]], replaced: Replacements
) -> None:
    accelerator = torch.accelerator
    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "device_count": lambda: simulation.spec.count,
        "current_accelerator": lambda check_available=False: torch.device("cuda"),
        "current_device_index": lambda: simulation.device,
        "current_device_idx": lambda: simulation.device,
        "set_device_index": functions["set_device"],
        "set_device_idx": functions["set_device"],
        "synchronize": functions["synchronize"],
        "current_stream": functions["current_stream"],
    }
    for name in ("empty_cache", "memory_allocated", "max_memory_allocated", "memory_reserved",
                 "max_memory_reserved", "memory_stats", "reset_peak_memory_stats"):  # fmt: skip
        answers[name] = functions[name]
    for name, answer in answers.items():
        if hasattr(accelerator, name):
            replaced.put(accelerator, name, answer)
