"""This knows which devices are simulated, which is current, and what their names mean."""

from __future__ import annotations

import functools
import os
import threading
from typing import Any

import torch

from tensortrail.tracer.rehearsal import state
from tensortrail.tracer.rehearsal.devices.spec import VISIBLE, Spec, named

FORKED = (
    "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must "
    "use the 'spawn' start method"
)

LOST = (
    "CUDA error: initialization error\nCUDA kernel errors might be asynchronously reported at "
    "some other API call, so the stacktrace below might be incorrect."
)
"""What CUDA says to a forked process that works on tensors of its parent."""

NONE = "No CUDA GPUs are available"
"""What torch says where the environment hides all of them."""


REFUSED = getattr(torch, "AcceleratorError", RuntimeError)
"""What CUDA's own errors are raised as; since torch 2.8 with a class of their own."""


class Current(threading.local):
    device = 0


class Devices:
    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self._current = Current()
        self._listed = os.environ.get(VISIBLE)
        self._count: int | None = None
        """How many the program found when it first used one."""
        self._used_by = 0
        """The process that has something on them."""
        self._started = False

    @property
    def is_started(self) -> bool:
        """Whether the program has used one in this process, or chosen one."""
        return (self._started or self._used_by != 0) and not self.is_lost

    def start(self) -> None:
        self._started = True

    @property
    def device(self) -> int:
        return self._current.device

    @device.setter
    def device(self, index: int) -> None:
        self.checked(index)
        self._current.device = index

    @property
    def count(self) -> int:
        """Those that a program finds: it may hide some in its environment before it uses one."""
        if self._count is not None:
            return self._count
        listed = os.environ.get(VISIBLE)
        if listed == self._listed or listed is None:
            return self.spec.count
        return min(named(listed, self.spec.most_number), self.spec.count)

    def checked(self, index: int) -> int:
        count = self.count
        if not count:
            raise RuntimeError(NONE)
        if not 0 <= index < count:
            raise REFUSED(
                "CUDA error: invalid device ordinal\nGPU device may be out of range, do you have "
                f"enough GPUs? (rehearsing {count})"
            )
        self._count = count
        return index

    def not_used_yet(self) -> None:
        """What a rehearsal makes to begin with is no use of the program's."""
        self._count = None
        self._used_by = 0
        self._started = False

    def counted(self, index: int) -> int:
        """As C++ checks the number of a GPU whose stream is asked for."""
        if not 0 <= index < self.count:
            raise RuntimeError(
                f"Device index value {index} is out of index range [0, {self.count})"
            )
        return index

    def known_to_allocator(self, index: int) -> int:
        if not 0 <= index < self.count:
            raise RuntimeError(f"Invalid device argument {index}: did you call init?")
        return index

    def index_of(self, device: Any) -> int | None:
        """Which simulated device is meant; None for another kind of device."""
        if type(device) is int:
            return self.checked(device)
        is_simulated, index = _meant(device)
        if not is_simulated:
            return index
        if self._used_by and self._used_by != os.getpid():  # as `is_lost`, for each move
            raise RuntimeError(FORKED)
        return self.checked(self._current.device if index is None else index)

    @property
    def is_lost(self) -> bool:
        """This process was forked from the one that has something on them."""
        return self._used_by not in (0, os.getpid())

    def check_usable(self) -> None:
        if self.is_lost:
            raise REFUSED(LOST)

    def taken(self) -> None:
        self._used_by = self._used_by or os.getpid()

    def plain_devices(self, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The same with the index of the current device where a device came without one."""
        args = tuple(self._indexed(each) for each in args)
        if "device" in kwargs:
            kwargs = {**kwargs, "device": self._indexed(kwargs["device"], number=True)}
        return args, kwargs

    def target(self, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """As `plain_devices` for `.to(...)`, whose first argument may be a device's number."""
        if args and type(args[0]) is int:
            args = (torch.device("cuda", self.checked(args[0])), *args[1:])
        return self.plain_devices(args, kwargs)

    def numbered(self, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The same with a device where a number stands for one; names of devices stay."""
        if args and type(args[0]) is int:
            args = (torch.device("cuda", self.checked(args[0])), *args[1:])
        if type(number := kwargs.get("device")) is int:
            kwargs = {**kwargs, "device": torch.device("cuda", self.checked(number))}
        return args, kwargs

    def _indexed(self, value: Any, number: bool = False) -> Any:
        if isinstance(value, str) and value.startswith("cuda"):
            return torch.device("cuda", self.index_of(value) or 0)
        if isinstance(value, torch.device) and value.type == "cuda":
            return torch.device("cuda", self.index_of(value) or 0)
        if number and type(value) is int:
            return torch.device("cuda", self.checked(value))
        return value


@functools.lru_cache
def _meant(device: Any) -> tuple[bool, int | None]:
    """Whether it is a GPU, and its number; of a device of the host, which GPU C++ means."""
    device = torch.device(device) if not isinstance(device, torch.device) else device
    is_gpu = device.type == "cuda"
    return is_gpu, device.index if is_gpu else state.from_torch(device)
