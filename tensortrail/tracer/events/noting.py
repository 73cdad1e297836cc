"""What was observed is written down as an event, with where the program is."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.focus import Focus
from tensortrail.tracer.events.op_names import op_name
from tensortrail.tracer.events.whereabouts import Whereabouts
from tensortrail.tracer.identity.storages import Entry, Storages
from tensortrail.tracer.identity.who_holds import MOST_LOOKS, holders
from tensortrail.tracer.noticing.last_writers import LastWriters
from tensortrail.tracer.patching.signals import let_through
from tensortrail.tracer.trail.layout import CODE
from tensortrail.tracer.trail.writer import TrailWriter

BY_HOOKS = {Did.MOVE, Did.COPY, Did.SWAP, Did.LOAD}
"""What hooks of libraries do to weights; such events say which hook it was."""


class Noting(Whereabouts):
    """The part of `Recorder` that writes."""

    def __init__(self, writer: TrailWriter, storages: Storages, focus: Focus) -> None:
        super().__init__(writer)
        self.active = True
        self.focus: Final = focus
        self._wants = focus.wants if focus != Focus() else None
        """Which storages are told of; None for all."""
        self.storages = storages
        self.dead = storages.dead
        self.last_writers: LastWriters | None = None
        """Who wrote each storage last, if an audit was asked for."""
        self._looks = 0
        self._ops: dict[Any, int] = {}
        self._counts: dict[tuple[int, int], int] = {}

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

    def often(self, did: Did, op: Any, most: int = 3, site: int = 0) -> bool:
        """Whether this kind of event was noted `most` times already, at this place or that site."""
        key = (CODE[did] * 100_000 + self.op(op), site or self.site(sys._getframe(1)))
        count = self._counts.get(key, 0)
        if count < most:
            self._counts[key] = count + 1
        return count >= most

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

    def holders(self, entries: list[Entry]) -> list[str]:
        """Who holds these storages; a costly look, so it is taken a few times only."""
        self._looks += 1
        return holders(entries) if self._looks <= MOST_LOOKS else []

    def guarded(self, look: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Whatever goes wrong while looking, the program does not notice."""
        try:
            return look(self, *args, **kwargs)
        except Exception as error:
            self.trouble(error)
            return None

    def trouble(self, error: Exception) -> None:
        """A fault of ours: the program goes on, the summary tells."""
        let_through(error)
        if isinstance(error, RecursionError):
            return  # the program is about to have its own
        self.writer.failed(f"{type(error).__name__}: {error}")

    def flush(self) -> None:
        self.writer.flush()
