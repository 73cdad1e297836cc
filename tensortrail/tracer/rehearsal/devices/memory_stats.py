"""`torch.cuda.memory_stats` reads the statistics of a GPU's allocator.

Nothing is cached on a simulated device: what is reserved is what is allocated."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tensortrail.tracer.rehearsal.devices.memory import Count, Memory

BYTES = ("allocated_bytes", "reserved_bytes", "active_bytes", "requested_bytes")
BLOCKS = ("allocation", "segment", "active")
NOTHING = ("inactive_split", "inactive_split_bytes")
SINGLE = ("oversize_allocations", "oversize_segments")
OF_THE_HOST = ("allocations", "allocated_bytes", "active_requests", "active_bytes")
TIMES = ("host_alloc_time", "host_free_time")


def nested(memory: Memory, index: int) -> dict[str, Any]:
    def by_pool(count: Count) -> dict[str, Any]:
        none = asdict(Count())
        return {"all": asdict(count), "small_pool": none, "large_pool": asdict(count)}

    return {
        **{name: by_pool(memory.bytes[index]) for name in BYTES},
        **{name: by_pool(memory.blocks[index]) for name in BLOCKS},
        **{name: by_pool(Count()) for name in NOTHING},
        **{name: asdict(Count()) for name in SINGLE},
        "num_alloc_retries": memory.refused[index],
        "num_ooms": memory.refused[index],
        "num_sync_all_streams": 0,
        "num_device_alloc": memory.blocks[index].allocated,
        "num_device_free": memory.blocks[index].freed,
        "max_split_size": -1,
    }


def of_the_host() -> dict[str, Any]:
    """The statistics of pinned memory, which is a flag here: all are zero."""
    time = dict.fromkeys(("total", "max", "min", "count", "avg"), 0)
    return {
        **{name: asdict(Count()) for name in OF_THE_HOST},
        **{name: dict(time) for name in TIMES},
        "num_host_alloc": 0,
        "num_host_free": 0,
    }
