"""With `--audit` it is kept who wrote each storage last, and from which file it came.

Nothing is written down at each write: a snapshot asks when it is taken."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.sites import Place
from tensortrail.tracer.identity.storages import Entry
from tensortrail.tracer.noticing.notes import Notes
from tensortrail.tracer.noticing.operation_kinds import writes_in_place

GIVES_VALUES = {Did.CREATE, Did.COPY, Did.LOAD, Did.MOVE, Did.SWAP, Did.STAGE}


class Written(NamedTuple):
    op: str
    place: Place | None
    turn: int
    file: str = ""
    """The file the values came from."""
    steps: int = 0
    """Of an optimizer."""

    @property
    def text(self) -> str:
        where = f" at {os.path.basename(self.place[0])}:{self.place[1]}" if self.place else ""
        load = f", with values of {os.path.basename(self.file)}" if self.file else ""
        steps = f", step {self.steps}" if self.steps else ""
        return f"`{self.op}`{where}{steps}{load}"


class LastWriters:
    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._by_storage: dict[int, Written] = {}
        self._steps: Counter[tuple[int, str]] = Counter()
        self._turn = 0

    def of(self, entry: Entry | None) -> tuple[str, int]:
        found = self._by_storage.get(entry.number) if entry is not None else None
        return (found.text, found.turn) if found is not None else ("", 0)

    def look(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """An operation in place is about to write its first operand, or all of a list."""
        name = getattr(func, "__name__", "").partition(".")[0]
        if not writes_in_place(name, kwargs):
            return
        target = kwargs.get("out", args[0] if args else kwargs.get("tensor"))
        for tensor in target if isinstance(target, (list, tuple)) else (target,):
            for _, entry in self._notes.storages.parts(tensor):
                self.wrote(entry, self._notes.op_text(func), self._notes.user_here())

    def happened(
        self,
        did: Did,
        entry: Entry | None,
        other: Entry | None,
        op: str,
        facts: Mapping[str, Any] | None,
        place: Place | None,
    ) -> None:
        """An event of the recording. What only moves values keeps their writer."""
        if did not in GIVES_VALUES or entry is None:
            return
        source = self._by_storage.get(other.number) if other is not None else None
        if did in (Did.MOVE, Did.SWAP, Did.STAGE) and source is not None:
            if did is not Did.SWAP or entry.number not in self._by_storage:
                self._by_storage[entry.number] = source
            return
        file = str((facts or {}).get("path", "")) if did is Did.LOAD else ""
        self.wrote(entry, op, place, file or (source.file if source is not None else ""))

    def wrote(self, entry: Entry, op: str, place: Place | None, file: str = "") -> None:
        self._turn += 1
        self._by_storage[entry.number] = Written(op, place, self._turn, file)

    def stepped(self, entry: Entry, op: str, place: Place | None) -> None:
        """An optimizer wrote it."""
        self._turn += 1
        self._steps[entry.number, op] += 1
        steps = self._steps[entry.number, op]
        self._by_storage[entry.number] = Written(op, place, self._turn, "", steps)

    def freed(self, number: int) -> None:
        self._by_storage.pop(number, None)
