"""Streams and events: on the simulated device all work is done at once, in order.

What can still be seen is whether somebody waited: a copy to the host that was not waited for
stays pending (see `pending`)."""

from __future__ import annotations

import itertools
import time
from typing import Any

import torch

from tensortrail.tracer.rehearsal import state
from tensortrail.tracer.rehearsal.replacements import Replacements
from tensortrail.tracer.rehearsal.simulation import Simulation

CUDA = 1
"""The number of the device type in C++."""
_numbers = itertools.count(0x1000, 0x100)


class Stream:
    """`torch.cuda.Stream`"""

    device_type = CUDA
    cuda_stream: int

    def __init__(self, device: Any = None, priority: int = 0, **known: Any) -> None:
        simulation = state.required()
        index = simulation.device if device is None else device
        self.device_index = (
            simulation.checked(index) if isinstance(index, int) else simulation.index_of(index) or 0
        )
        self.device = torch.device("cuda", self.device_index)
        self.priority = priority
        self.cuda_stream = self.stream_id = known.get("stream_id", next(_numbers))

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
        self._before = _streams().current(self.device_index), state.required().device
        _streams().set_current(self)
        return self

    def __exit__(self, *_: Any) -> None:
        stream, state.required().device = self._before
        _streams().set_current(stream, here=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[int, int]:
        return self.device_index, self.cuda_stream

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class Event:
    """`torch.cuda.Event`"""

    def __init__(self, enable_timing: bool = False, **_: Any) -> None:
        self._timed = enable_timing
        self._at = 0.0
        self._index = 0

    @property
    def device(self) -> torch.device:
        return torch.device("cuda", self._index)

    def record(self, stream: Any = None) -> None:
        self._at = time.perf_counter()
        self._index = stream.device_index if stream is not None else state.required().device

    def synchronize(self) -> None:
        state.required().synchronized(self._index)

    def wait(self, stream: Any = None) -> None: ...

    def query(self) -> bool:
        return True

    def elapsed_time(self, end_event: Event) -> float:
        if not (self._timed and end_event._timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if not (self._at and end_event._at):
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (end_event._at - self._at) * 1000

    def __repr__(self) -> str:
        return (
            f"<torch.cuda.Event {id(self):#x}>" if self._at else "<torch.cuda.Event uninitialized>"
        )


class ExternalStream(Stream):
    """`torch.cuda.ExternalStream`"""

    def __init__(self, stream_ptr: int, device: Any = None, **_: Any) -> None:
        raise NotImplementedError("streams of other libraries are not simulated")


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
            self._default[index] = Stream(index, stream_id=0)
        return self._default[index]

    def current(self, device: Any = None) -> Stream:
        index = self._index(device)
        return self._current.get(index) or self.default(index)

    def set_current(self, stream: Any, here: bool = True) -> None:
        """A stream of another device makes that device the current one."""
        if stream is not None:
            self._current[stream.device_index] = stream
            if here:
                self._simulation.device = stream.device_index

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


def install(simulation: Simulation, replaced: Replacements) -> None:
    for owner in (torch.cuda, torch.cuda.streams):
        replaced.put(owner, "Stream", Stream)
        replaced.put(owner, "Event", Event)
        replaced.put(owner, "ExternalStream", ExternalStream)
    replaced.put(torch.cuda, "StreamContext", _Within)
    for name, plain, ours in (("Stream", torch.Stream, Stream), ("Event", torch.Event, Event)):
        replaced.put(torch, name, _for_any_device(simulation, plain, ours))


def _for_any_device(simulation: Simulation, plain: Any, ours: Any) -> Any:
    """`torch.Stream` and `torch.Event`: of whatever device is asked for."""

    class Kind(type):
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, (plain, ours))

        def __call__(cls, device: Any = None, *args: Any, **options: Any) -> Any:
            named = device is not None and not isinstance(device, int)
            if named and simulation.index_of(device) is None:
                return plain(device, *args, **options)
            if ours is Event:
                return Event(options.get("enable_timing", False))
            return ours(device, **options)

    return Kind(plain.__name__, (), {"__module__": "torch"})
