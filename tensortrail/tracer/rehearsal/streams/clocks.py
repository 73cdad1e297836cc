"""What comes after what: a clock for every stream, and one for the host.

A stream is a queue of work. Its clock says how far every queue has come, at least, when the work
it is given now begins. Time in a queue goes on whenever somebody begins to wait for it: what was
given to it before and after that can be told apart."""

from __future__ import annotations

from collections.abc import Mapping

Clock = Mapping[int, int]
"""The number of a queue -> the time in it."""
DEFAULT = 0
"""The stream that a device has from the beginning."""


class Queue:
    """The work that one stream of a device was given, in order."""

    __slots__ = ("clock", "device", "number", "seen", "stream")

    def __init__(self, number: int, device: int, stream: int) -> None:
        self.number, self.device, self.stream = number, device, stream
        self.clock: dict[int, int] = {number: 1}
        self.seen = 0
        """How many waits of the host its clock knows of."""

    @property
    def time(self) -> int:
        return self.clock[self.number]

    @property
    def is_default(self) -> bool:
        return self.stream == DEFAULT

    def __str__(self) -> str:
        name = "the default stream" if self.is_default else f"stream {self.stream:#x}"
        return f"{name} of cuda:{self.device}"


class Order:
    def __init__(self) -> None:
        self._queues: dict[tuple[int, int], Queue] = {}
        self._host: Clock = {}
        self._waits = 0

    def queue(self, device: int, stream: int = DEFAULT) -> Queue:
        found = self._queues.get((device, stream))
        if found is None:
            found = Queue(len(self._queues), device, stream)
            found = self._queues.setdefault((device, stream), found)
        return found

    def queues(self) -> list[Queue]:
        return list(self._queues.values())

    def begins(self, queue: Queue) -> Queue:
        """The queue is given work now: it comes after all that the host has waited for."""
        if queue.seen != self._waits:
            queue.seen = self._waits
            _join(queue.clock, self._host)
        return queue

    def mark(self, queue: Queue) -> Clock:
        """What the queue was given so far, for somebody who waits for it."""
        marked = dict(self.begins(queue).clock)
        queue.clock[queue.number] += 1
        return marked

    def wait(self, queue: Queue, marked: Clock) -> None:
        _join(queue.clock, marked)

    def host_waits(self, marked: Clock) -> None:
        host = dict(self._host)
        _join(host, marked)
        self._host = host  # made anew: another thread may be reading the old one
        self._waits += 1

    def host_waits_for(self, queue: Queue) -> None:
        """The host waits for what the queue was given so far."""
        if len(self._queues) > 1:
            self.host_waits(self.mark(queue))
            return
        number, clock = queue.number, queue.clock
        self._host = {number: clock[number]}  # of one queue alone nobody knows more than itself
        clock[number] += 1
        self._waits += 1
        queue.seen = self._waits

    def host_waits_for_all(self, device: int) -> None:
        for queue in self.queues():
            if queue.device == device:
                self.host_waits(self.mark(queue))

    def host_is_past(self, queue: Queue, time: int) -> bool:
        return self._host.get(queue.number, 0) >= time


def is_past(clock: Clock, queue: Queue, time: int) -> bool:
    """Whether what the queue was given at that time is done where the clock stands."""
    return clock.get(queue.number, 0) >= time


def _join(clock: dict[int, int], other: Clock) -> None:
    for number, time in other.items():
        if time > clock.get(number, 0):
            clock[number] = time
