"""Work on two streams races if nobody ordered it: reads, writes, and memory that is reused.

Nothing is looked at before there is a second stream. What was made until then is taken as written
where it was made."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._C import DisableTorchFunction, _current_graph_task_id

from tensortrail.tracer.rehearsal.devices.memory import Held, Memory
from tensortrail.tracer.rehearsal.streams.byte_ranges import Region, region
from tensortrail.tracer.rehearsal.streams.clocks import Order, Queue, is_past
from tensortrail.tracer.rehearsal.streams.unwaited_copies import READS_NOTHING
from tensortrail.tracer.rehearsal.streams.uses import Use, Uses
from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor

EMPTY = ("empty", "empty_strided", "empty_permuted", "empty_like", "new_empty", "new_empty_strided")
ONLY_LOOKS = frozenset((*READS_NOTHING, "_unsafe_view", "_reshape_alias", "alias"))
SMALL = 1 << 20
"""The allocator keeps smaller pieces of memory apart from larger ones."""
NO_TASK = -1
UNKNOWN_SITE = 0


Current = Callable[[int], Queue | None]


class Freed(NamedTuple):
    nbytes: int
    use: Use
    freed: Use
    entry: Any


class Listener(NamedTuple):
    """What a recording gives: the running line, what it knows a tensor as, an ear."""

    site: Callable[[], int]
    entry: Callable[[Tensor], Any]
    told: Callable[[Any, Sequence[Use]], None]
    trouble: Callable[[Exception], None]


class Races:
    def __init__(self, order: Order, memory: Memory, current: Current) -> None:
        self.on = False
        self.listener: Listener | None = None
        self._order, self._memory, self._current = order, memory, current
        self._here = threading.local()
        self._freed: dict[Queue, list[Freed]] = {}
        self._told: set[tuple[int, ...]] = set()

    def begin(self) -> None:
        """There is a second stream."""
        if not self.on and self.listener is not None:
            self._memory.born, self._memory.died = self._born, self._died
            self.on = True

    def end(self) -> None:
        self.on, self.listener = False, None

    def ran(self, func: Any, named: Sequence[tuple[str, Tensor]]) -> None:
        """An operation is about to run on the streams that are current."""
        name, written = _what(func)
        self._here.fills = "" if name in EMPTY else func
        if func.is_view or name in ONLY_LOOKS:
            return
        for argument, tensor in named:
            if isinstance(tensor, SimTensor):
                self.used(tensor, func, argument in written)

    def used(self, tensor: SimTensor, op: Any, writes: bool = False) -> None:
        try:
            with DisableTorchFunction():
                self._used(tensor, op, writes)
        except Exception as error:
            self._trouble(error)

    def moves(self, tensor: Tensor | None, op: Any) -> None:
        """A copy of the tensor is about to be made elsewhere."""
        if isinstance(tensor, SimTensor):
            self.used(tensor, op)
        self._here.fills = op

    def kept_for(self, tensor: SimTensor, queue: Queue) -> None:
        """`record_stream`"""
        with DisableTorchFunction():
            held = self._memory.held(tensor.inner.untyped_storage())
        if self.on and held is not None:
            self._uses(held).kept.add(queue.number)

    # --- reads and writes ----------------------------------------------------------------
    def _used(self, tensor: SimTensor, op: Any, writes: bool) -> None:
        inner = tensor.inner
        if not inner.numel() or inner.layout is not torch.strided:
            return
        held = self._memory.held(inner.untyped_storage())
        if held is None or self.listener is None:
            return
        queue = self._current(held.index)
        if queue is None:
            return
        self._order.begins(queue)
        uses = self._uses(held)
        does = "written" if writes else "read"
        use = Use(queue, queue.time, does, region(inner), self.listener.site(), op)
        for earlier in uses.last:
            if (
                (writes or earlier.writes)
                and earlier.queue is not queue
                and not is_past(queue.clock, earlier.queue, earlier.time)
                and earlier.where.surely_meets(use.where)
                and not (writes and earlier.site == UNKNOWN_SITE)  # perhaps it was never written
            ):
                self._tell(self.listener.entry(tensor), earlier, use)
                # One missing wait is told once, not with all that follows from it.
                self._order.wait(queue, {earlier.queue.number: earlier.time})
        uses.add(use)
        if queue is not uses.home and uses.entry is None:
            uses.entry = self.listener.entry(tensor)

    def _uses(self, held: Held) -> Uses:
        if held.uses is None:
            held.uses = Uses(self._order.queue(held.index))
            everything = Region(0, held.nbytes, True)
            made = Use(held.uses.home, held.time, "written", everything, UNKNOWN_SITE, "")
            held.uses.add(made)
        uses: Uses = held.uses
        return uses

    # --- memory --------------------------------------------------------------------------
    def _born(self, held: Held, written: bool) -> None:
        """Memory is given on the current stream: perhaps what another tensor had before."""
        home = self._current(held.index)
        if self.listener is None:
            return
        if home is None:
            held.uses = Uses(self._order.queue(held.index))
            held.uses.safe = True  # nobody knows who writes there
            return
        try:
            self._order.begins(home)
            uses = held.uses = Uses(home)
            uses.safe = _current_graph_task_id() != NO_TASK
            op = getattr(self._here, "fills", "") if written else ""
            where = Region(0, held.nbytes, True)
            if op:
                uses.add(Use(home, home.time, "written", where, self.listener.site(), op))
            if home in self._freed:
                self._given_again(home, held.nbytes, op)
        except Exception as error:
            self._trouble(error)

    def _died(self, held: Held) -> None:
        uses: Uses | None = held.uses
        if uses is None or uses.safe or self.listener is None:
            return
        try:
            use = uses.open_for(self._order)
            if use is not None:
                home, site = uses.home, self.listener.site()
                freed = Use(home, home.time, "freed", use.where, site, "")
                self._freed.setdefault(home, []).append(Freed(held.nbytes, use, freed, uses.entry))
        except Exception as error:
            self._trouble(error)

    def _given_again(self, home: Queue, nbytes: int, op: Any) -> None:
        assert self.listener is not None
        for each in self._freed.pop(home, ()):
            if is_past(home.clock, each.use.queue, each.use.time):
                continue
            fits = each.nbytes >= nbytes and (each.nbytes > SMALL) == (nbytes > SMALL)
            if not fits:
                self._freed.setdefault(home, []).append(each)
                continue
            site = self.listener.site()
            again = Use(home, home.time, "given away again", each.use.where, site, op)
            self._tell(each.entry, each.use, each.freed, again)

    def _tell(self, entry: Any, *uses: Use) -> None:
        where = tuple(use.site for use in uses)
        if self.listener is not None and where not in self._told:
            self._told.add(where)
            self.listener.told(entry, uses)

    def _trouble(self, error: Exception) -> None:
        if self.listener is not None:
            self.listener.trouble(error)


@functools.lru_cache(4096)
def _what(func: Any) -> tuple[str, frozenset[str]]:
    """The name of an operation, and the arguments it writes into."""
    written = frozenset(each.name for each in func._schema.arguments if each.is_write)
    return func._schema.name.partition("::")[2], written
