"""Which stream is current in each thread: the program says so, in a backward pass autograd does.

Autograd runs each step of a backward pass on the stream of its forward step, lets it wait for the
step before, and lets the caller's stream wait for all. Its C++ takes our tensors for the host's and
does none of it: it is done here, when the next stream is asked for."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import torch
from torch._C import _current_autograd_node, _current_graph_task_id

from tensortrail.tracer.rehearsal.devices.devices import Devices
from tensortrail.tracer.rehearsal.streams.clocks import Order, Queue
from tensortrail.tracer.rehearsal.streams.streams import Stream

NO_TASK = -1
ACCUMULATES = (1 << 64) - 1
"""The number of steps that put a gradient in its place."""
LONGEST_LOG = 20_000
Current = Mapping[int, Stream]


class Here(threading.local):
    def __init__(self) -> None:
        self.current: Current = {}
        self.log: list[tuple[int, Current]] = []
        """From which autograd step on which streams were current."""
        self.caller: Current | None = None
        """In a backward pass: the streams that were current around it."""
        self.step = -1
        self.is_sure = True
        """Whether all steps of the backward pass were looked up."""


class Streams:
    def __init__(self, order: Order, devices: Devices) -> None:
        self._order, self._devices = order, devices
        self._default: dict[int, Stream] = {}
        self._here = Here()
        self._threads: set[int] = set()
        """Those in which another stream than the default one was current."""

    def default(self, device: Any = None) -> Stream:
        index = self._index(device)
        if index not in self._default:
            self._default[index] = Stream(index, stream_id=0)
        return self._default[index]

    def current(self, device: Any = None) -> Stream:
        self.catch_up()
        index = self._index(device)
        return self._here.current.get(index) or self.default(index)

    def queue(self, index: int) -> Queue:
        """The work of the stream that is current on a device."""
        return self.current(index).queue if self._threads else self._order.queue(index)

    def known_queue(self, index: int) -> Queue | None:
        """The same; None in a backward pass through what several threads did."""
        if _current_graph_task_id() != NO_TASK and not self._is_sure():
            self.catch_up()
            return None
        return self.queue(index)

    def set_current(self, stream: Any, here: bool = True) -> None:
        """A stream of another device makes that device the current one."""
        if stream is None:
            return
        self.catch_up()
        if self._threads or not stream.queue.is_default:
            self._threads.add(threading.get_ident())
            self._set({**self._here.current, stream.device_index: stream})
        if here:
            self._devices.device = stream.device_index

    def catch_up(self) -> None:
        """The current stream follows autograd's."""
        if not self._threads:
            return
        here = self._here
        if _current_graph_task_id() == NO_TASK:
            if here.caller is not None:
                caller, here.caller, here.step = here.caller, None, -1
                self._hand_over(caller)
                if not here.is_sure:
                    here.is_sure = True
                    self._wait_for_all(caller)
            return
        node = _current_autograd_node()
        if node is None:
            return
        if not self._is_sure():
            here.caller, here.is_sure = here.caller or here.current, False
            return
        step = node._sequence_nr()
        if step not in (here.step, ACCUMULATES):
            here.step = step
            if here.caller is None:
                here.caller = here.current
            self._hand_over(self._at(step))

    def _is_sure(self) -> bool:
        return self._threads <= {threading.get_ident()}

    def _at(self, step: int) -> Current:
        log = self._here.log
        place = bisect_right(log, step, key=itemgetter(0))
        return log[place - 1][1] if place else {}

    def _hand_over(self, streams: Current) -> None:
        before = self._here.current
        for index in {*before, *streams}:
            old = (before.get(index) or self.default(index)).queue
            new = (streams.get(index) or self.default(index)).queue
            if old is not new:
                self._order.wait(new, self._order.mark(old))
        self._set(streams)

    def _wait_for_all(self, streams: Current) -> None:
        for index in range(self._devices.spec.count):
            queue = (streams.get(index) or self.default(index)).queue
            for other in self._order.queues():
                self._order.wait(queue, self._order.mark(other))

    def _set(self, streams: Current) -> None:
        here = self._here
        here.current = streams
        if _current_graph_task_id() != NO_TASK and not torch.is_grad_enabled():
            return
        step = torch._C._autograd._get_sequence_nr()
        if here.log and here.log[-1][0] == step:
            here.log.pop()
        here.log.append((step, streams))
        del here.log[:-LONGEST_LOG]

    def _index(self, device: Any) -> int:
        if device is None:
            return self._devices.device
        if not isinstance(device, int):
            return self._devices.index_of(device) or 0
        return self._devices.counted(device)


class Within:
    """`torch.cuda.stream(...)`"""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __enter__(self) -> Any:
        return self._stream.__enter__() if self._stream is not None else None

    def __exit__(self, *error: Any) -> None:
        if self._stream is not None:
            self._stream.__exit__(*error)
