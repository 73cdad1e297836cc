"""The recorder writes what hooks and the mode observe as events. A process has at most one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, Protocol

import torch
from torch._C import DisableTorchFunction

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.focus import Focus
from tensortrail.tracer.events.op_names import op_name
from tensortrail.tracer.events.phases import Phases
from tensortrail.tracer.events.whereabouts import Whereabouts
from tensortrail.tracer.identity.inner_tensors import PLAIN, is_wrapper
from tensortrail.tracer.identity.model_names import ModelNames
from tensortrail.tracer.identity.module_tensors import owned
from tensortrail.tracer.identity.storages import Entry, Storages
from tensortrail.tracer.identity.who_holds import MOST_LOOKS, holders
from tensortrail.tracer.noticing.cut_graphs import CutGraphs
from tensortrail.tracer.noticing.empty_addresses import EmptyAddresses
from tensortrail.tracer.noticing.failed_operands import Failures
from tensortrail.tracer.noticing.fresh_memory import FreshMemory
from tensortrail.tracer.noticing.incomplete_loads import IncompleteLoads
from tensortrail.tracer.noticing.last_writers import LastWriters
from tensortrail.tracer.noticing.loads import Loads
from tensortrail.tracer.noticing.mixed_devices import Meeting, MixedDevices
from tensortrail.tracer.noticing.onload_hooks import OnloadHooks
from tensortrail.tracer.noticing.operation_kinds import QUESTIONS, SAME_VALUES
from tensortrail.tracer.noticing.refused_backward import RefusedBackward
from tensortrail.tracer.noticing.self_averages import SelfAverages
from tensortrail.tracer.noticing.unread_loads import UnreadLoads
from tensortrail.tracer.noticing.weights_not_brought import NotBrought
from tensortrail.tracer.noticing.wrapper_answers import Wrappers
from tensortrail.tracer.noticing.written_checkpoints import WrittenCheckpoints
from tensortrail.tracer.patching.signals import let_through
from tensortrail.tracer.trail.layout import CODE, FREED
from tensortrail.tracer.trail.writer import TrailWriter

FREE = CODE[Did.FREE]
BY_HOOKS = {Did.MOVE, Did.COPY, Did.SWAP, Did.LOAD}
"""What hooks of libraries do to weights; such events say which hook it was."""
Run = Callable[[], None]


class MayStop(Protocol):
    def ask(self, code: str, evidence: str = "") -> None:
        """Stop the program if the rule has a finding at the user's line, with that evidence."""


class Recorder(Whereabouts):
    def __init__(self, writer: TrailWriter, focus: Focus | None = None) -> None:
        super().__init__(writer)
        self.active = True
        self.focus: Final = focus or Focus()
        self._wants = self.focus.wants if self.focus != Focus() else None
        """Which storages are told of; None for all."""
        self.storages = Storages(writer, self._freed)
        self.dead = self.storages.dead
        self.models = ModelNames()
        self.onload_hooks = OnloadHooks(self.storages, self.models)
        not_brought = NotBrought(self.onload_hooks)
        self.mixed_devices = MixedDevices(self, not_brought)
        self.failures = Failures(self, not_brought, self.models)
        self.fresh_memory = FreshMemory(self)
        self.loads = Loads(self, self.fresh_memory)
        self.incomplete_loads = IncompleteLoads(self, self.fresh_memory, self.loads)
        self.refused_backward = RefusedBackward(self)
        self.self_averages = SelfAverages(self)
        self.unread_loads = UnreadLoads(self, self.fresh_memory)
        self.addresses = EmptyAddresses(self)
        self.wrappers = Wrappers(self, self.addresses)
        self.cut_graphs = CutGraphs(self)
        self.short_ways = self._wants is None
        """Whether moves of plain tensors may take a short way: nothing asks more about them."""
        self.alert = False
        """Whether every operation must be looked at: there is more than one device, or fresh
        memory that nobody wrote into."""
        self.phases = Phases(self, self.of_thread)
        self.stage: Any = None
        """The rehearsal that is on."""
        self.may_stop: MayStop | None = None
        """Whom hooks ask before a step that may destroy data."""
        self.written: WrittenCheckpoints | None = None
        """What judges checkpoints that were just written, if somebody asked for it."""
        self.last_writers: LastWriters | None = None
        """Who wrote each storage last, if an audit was asked for."""
        self.joined: Callable[[int], None] = lambda rank: None
        """Called when a process that the program started by itself learns its rank."""
        self.in_child: Callable[[Run, str], Run] = lambda run, name: run
        """What a spawned child of that name runs in place of its own `run`."""
        self.mapped: set[str] = set()
        """Files that tensors were mapped from."""
        self.steps = range(0)
        """The steps in which every operation is recorded."""
        self.at_close: list[Callable[[], None]] = []
        self.at_fork: list[Callable[[], None]] = []
        """Called in a forked child: what waits in the parent does not wait there."""
        self.optimizer_steps = 0
        self._looks = 0
        self._ops: dict[Any, int] = {}
        self._counts: dict[tuple[int, int], int] = {}

    # --- events --------------------------------------------------------------------------
    def note(
        self,
        did: Did,
        entry: Entry | None = None,
        other: Entry | None = None,
        op: Any = "",
        facts: Mapping[str, Any] | None = None,
        site: int = 0,
    ) -> None:
        """Write down what just happened in the innermost frame that is not ours, or at that site,
        where the caller knows it."""
        if not self.active or (self._wants and entry is not None and not self._wants(entry, other)):
            return
        if self.last_writers is not None and entry is not None:
            place = self.user_here()
            self.last_writers.happened(did, entry, other, self.op_text(op), facts, place)
        if self.dead:
            self.storages.bury()
        if acting := self.of_thread.library_hook:
            if did in (Did.ASKED, Did.POINTER):
                return  # asked at every call; addresses are looked up among those of real weights
            if did in BY_HOOKS:
                facts = {**(facts or {}), "hook": acting}
        self.writer.event(
            CODE[did],
            self.context(),
            site or self.site(sys._getframe(1)),
            entry.number if entry is not None else 0,
            other.number if other is not None else 0,
            self.op(op),
            facts,
        )

    def note_alike(
        self, did: Did, entry: Entry, op: str, facts: Mapping[str, int], site: int = 0
    ) -> None:
        """As `note`, of many events that have the same facts at a line: these are written once."""
        writer, site = self.writer, site or self.site(sys._getframe(1))
        asked = self._wants or self.last_writers is not None or self.of_thread.library_hook
        if asked or writer.thinner.active or not self.active:
            self.note(did, entry, op=op, facts=facts, site=site)
            return
        if self.dead:
            self.storages.bury()
        code, context = CODE[did], self.context()
        said = code, context, site, op, *facts.values()
        kind = writer.kinds.get(said)
        if kind is None:
            kind = writer.kinds[said] = writer.kind(code, context, site, self.op(op), (), facts)
        writer.short(kind, entry.number)

    def suspects(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None) -> bool:
        """Whether an operation must be looked at. Most ask one tensor something, or run on plain
        tensors of one device."""
        if func in QUESTIONS:
            return False
        if self.last_writers is not None or (self.fresh_memory.some and func not in SAME_VALUES):
            return True
        return self.mixed_devices.suspects(args, kwargs)

    def look(
        self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], watched: bool
    ) -> Meeting | None:
        """Look at the operands of any operation, before it runs."""
        try:
            if self.fresh_memory.some:
                self.fresh_memory.look(func, args, kwargs)
            if self.last_writers is not None:
                self.last_writers.look(func, args, kwargs)
            if not watched and self.mixed_devices.possible:
                return self.mixed_devices.look(func, args, kwargs)
        except Exception as error:
            self.trouble(error)
        return None

    def guarded(self, look: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Whatever goes wrong while looking, the program does not notice."""
        try:
            return look(self, *args, **kwargs)
        except Exception as error:
            self.trouble(error)
            return None

    def changed(self) -> None:
        """What decides whether operations are looked at has changed."""
        closely = self.fresh_memory.some or self.last_writers is not None
        self.alert = closely or self.mixed_devices.possible
        self.short_ways = not closely and self._wants is None

    def copied(self, source: Entry | None, copy: Entry | None) -> None:
        """The same values, in memory of its own."""
        if self.fresh_memory.some:
            self.fresh_memory.copied(source, copy)
        if self.loads.files:
            self.loads.copied(source, copy)

    def swapped(self, old: Entry | None, new: Entry | None, op: Any) -> None:
        """A tensor that had the storage `old` has `new` now; its name goes with it."""
        if new is None or new is old:
            return
        if old is not None and old.name:
            self.storages.name(new, old.name)
        self.note(Did.SWAP, new, old, op)

    def flush(self) -> None:
        self.writer.flush()

    def trouble(self, error: Exception) -> None:
        """A fault of ours: the program goes on, the summary tells."""
        let_through(error)
        if isinstance(error, RecursionError):
            return  # the program is about to have its own
        self.writer.failed(f"{type(error).__name__}: {error}")

    def note_at(
        self,
        site: int,
        did: Did,
        entry: Entry | None = None,
        other: Entry | None = None,
        op: Any = "",
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """As `note`, at a place that was remembered."""
        numbers = (entry.number if entry else 0, other.number if other else 0)
        if self.active:
            self.writer.event(CODE[did], self.context(), site, *numbers, self.op(op), facts)

    def holders(self, entries: list[Entry]) -> list[str]:
        """Who holds these storages; a costly look, so it is taken a few times only."""
        self._looks += 1
        return holders(entries) if self._looks <= MOST_LOOKS else []

    def often(self, did: Did, op: Any, most: int = 3, site: int = 0) -> bool:
        """Whether this kind of event was noted `most` times already, at this place or that site."""
        key = (CODE[did] * 100_000 + self.op(op), site or self.site(sys._getframe(1)))
        count = self._counts.get(key, 0)
        if count < most:
            self._counts[key] = count + 1
        return count >= most

    def _freed(self, number: int) -> None:
        if not self.short_ways:
            self.fresh_memory.freed(number)
            if self.last_writers is not None:
                self.last_writers.freed(number)
        loads, incomplete, writer = self.loads, self.incomplete_loads, self.writer
        if loads.files:
            loads.freed(number)
        if incomplete.untrained:
            incomplete.freed(number)
        if not self.active:
            return
        if writer.thinner.active:
            writer.event(FREE, 0, 0, number)
        else:
            writer.short(FREED, number)

    def op(self, op: Any) -> int:
        number = self._ops.get(op)
        if number is None:
            if isinstance(op, str):
                return self.writer.text(op)
            number = self._ops[op] = self.writer.text(op_name(op))
        return number

    def op_text(self, op: Any) -> str:
        return op if isinstance(op, str) else op_name(op)

    @contextmanager
    def acts(self, hook: str) -> Iterator[None]:
        """What is moved meanwhile is moved by this hook."""
        local = self.of_thread
        before, local.library_hook = local.library_hook, hook
        try:
            yield
        finally:
            local.library_hook = before

    # --- names ---------------------------------------------------------------------------
    def name_module(
        self, module: torch.nn.Module, root: str = "", anyway: bool = False
    ) -> list[Entry]:
        """Parameters and buffers are called by their path in the module from now on, `anyway` also
        where they have a longer one. Gives their storages."""
        return self.name_tensors(owned(module, root or self.models.of(module)), anyway)

    def name_tensors(self, tensors: Iterable[tuple[str, Any]], anyway: bool = False) -> list[Entry]:
        found: dict[int, Entry] = {}
        storages = self.storages
        with DisableTorchFunction():  # once for all of them
            for name, tensor in tensors:
                if type(tensor) in PLAIN:
                    own = storages.plain(tensor)
                    if own is not None:
                        storages.name(own, name)
                        found[own.number] = own
                    continue
                for entry in storages.entries(tensor):
                    storages.name(entry, name, anyway)
                    found[entry.number] = entry
                if is_wrapper(tensor):
                    self.guarded(_met, tensor)
        return list(found.values())

    # --- life ----------------------------------------------------------------------------
    def forked(self, writer: TrailWriter) -> None:
        """The child goes on in a file of its own, where the parent's thread was."""
        self.writer = writer
        self.sites.clear()
        self._ops.clear()
        self._counts.clear()
        self.storages.moved_to(writer)
        local = self.of_thread
        local.context = -1
        self.note(Did.WORKER, op=f"process {local.child}")
        for phase in local.phases:
            self.note(Did.PHASE, facts={"began": phase})
        for forget in self.at_fork:
            forget()

    def close(self) -> None:
        if not self.active:
            return
        self.guarded(lambda of: of.fresh_memory.at_end())
        self.incomplete_loads.at_end()
        self.guarded(lambda of: of.unread_loads.at_end())
        for last in self.at_close:
            with suppress(Exception):
                last()
        self.storages.bury()
        self.active = False
        with suppress(Exception):
            self.writer.close()
        self.storages.forget()


def _met(recorder: Recorder, tensor: Any) -> None:
    recorder.wrappers.met(tensor)
