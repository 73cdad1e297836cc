"""Streams and events: on the simulated device all work is done at once, in order.

What can still be seen is whether somebody waited: a copy to the host that was not waited for
stays pending (see `pending`)."""

from __future__ import annotations

import time
from typing import Any

import torch

from tensortrail.tracer.rehearsal import state
from tensortrail.tracer.rehearsal.simulation import Simulation


class Stream:
    """`torch.cuda.Stream`"""

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        simulation = state.required()
        index = simulation.device if device is None else device
        self.device_index = index if isinstance(index, int) else simulation.index_of(index) or 0
        self.device = torch.device("cuda", self.device_index)
        self.device_type = 1
        self.priority = priority
        self.cuda_stream = self.stream_id = id(self) & 0xFFFFFFFF

    def synchronize(self) -> None:
        state.required().synchronized(self.device_index)

    def query(self) -> bool:
        return True

    def is_capturing(self) -> bool:
        return False

    def wait_stream(self, stream: Any) -> None: ...

    def wait_event(self, event: Any) -> None: ...

    def record_event(self, event: Any = None) -> Any:
        event = Event() if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        self._before = _streams().current()
        _streams().set_current(self)
        return self

    def __exit__(self, *_: Any) -> None:
        _streams().set_current(self._before)


class Event:
    """`torch.cuda.Event`"""

    def __init__(self, enable_timing: bool = False, **_: Any) -> None:
        self._timed = enable_timing
        self._at = 0.0
        self._index = 0

    def record(self, stream: Any = None) -> None:
        self._at = time.perf_counter()
        self._index = stream.device_index if stream is not None else state.required().device

    def synchronize(self) -> None:
        state.required().synchronized(self._index)

    def wait(self, stream: Any = None) -> None: ...

    def query(self) -> bool:
        return True

    def elapsed_time(self, end_event: Event) -> float:
        return (end_event._at - self._at) * 1000


class Streams:
    def __init__(self, simulation: Simulation) -> None:
        global _installed
        _installed = self
        self._simulation = simulation
        self._default: dict[int, Stream] = {}
        self._current: dict[int, Stream] = {}

    def default(self, device: Any = None) -> Stream:
        index = self._index(device)
        if index not in self._default:
            self._default[index] = Stream(index)
        return self._default[index]

    def current(self, device: Any = None) -> Stream:
        index = self._index(device)
        return self._current.get(index) or self.default(index)

    def set_current(self, stream: Any) -> None:
        if stream is not None:
            self._current[stream.device_index] = stream

    def within(self, stream: Any) -> Any:
        return _Within(stream)

    def _index(self, device: Any) -> int:
        if device is None:
            return self._simulation.device
        return device if isinstance(device, int) else self._simulation.index_of(device) or 0


class _Within:
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __enter__(self) -> Any:
        return self._stream.__enter__() if self._stream is not None else None

    def __exit__(self, *error: Any) -> None:
        if self._stream is not None:
            self._stream.__exit__(*error)


_installed: Streams | None = None


def _streams() -> Streams:
    assert _installed is not None
    return _installed
