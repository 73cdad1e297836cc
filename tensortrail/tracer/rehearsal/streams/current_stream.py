"""Which stream is current in each thread: the program says so, in a backward pass autograd does.

Autograd runs each step of a backward pass on the stream of its forward step, lets it wait for the
step before, and lets the caller's stream wait for all. What was queued for the end of the pass runs
on the caller's stream too. Its C++ takes our tensors for the host's and does none of it: it is done
here, when the next stream is asked for."""

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
NO_STEP, END = -1, -2
"""Before the first step of a backward pass, and after the last one."""
LONGEST_LOG = 20_000
Current = Mapping[int, Stream]


class Pass:
    """A backward pass: how far it is, and which streams were current around it."""

    __slots__ = ("caller", "is_sure", "step", "task")

    def __init__(self, task: int, caller: Current) -> None:
        self.task, self.caller, self.step = task, caller, NO_STEP
        self.is_sure = True
        """Whether all its steps were looked up."""


class Here(threading.local):
    def __init__(self) -> None:
        self.current: Current = {}
        self.log: list[tuple[int, Current]] = []
        """From which autograd step on which streams were current."""
        self.passes: list[Pass] = []
        """Each was begun by a step of the one before."""


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
        if self._threads or not stream.queue.is_default:
            self._threads.add(threading.get_ident())
            self.catch_up()
            self._set({**self._here.current, stream.device_index: stream})
        if here:
            self._devices.device = stream.device_index

    def catch_up(self) -> None:
        """The current stream follows autograd's."""
        if not self._threads:
            return
        running = self._running(_current_graph_task_id())
        if running is None:
            return
        if not self._is_sure():
            running.is_sure = False
            return
        node = _current_autograd_node()
        step = END if node is None else node._sequence_nr()
        if step not in (running.step, ACCUMULATES):
            running.step = step
            self._hand_over(running.caller if step == END else self._at(step))

    def _running(self, task: int) -> Pass | None:
        """The backward pass that runs in this thread; those begun after it have ended."""
        passes = self._here.passes
        while passes and passes[-1].task > task:
            self._end(passes.pop())
        if task != NO_TASK and not (passes and passes[-1].task == task):
            passes.append(Pass(task, self._here.current))
        return passes[-1] if passes else None

    def _end(self, ended: Pass) -> None:
        self._hand_over(ended.caller)
        if not ended.is_sure:
            self._wait_for_all(ended.caller)

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
