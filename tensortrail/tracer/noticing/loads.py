"""It is kept which weights a load or copy gave values, and from which file these came."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.storages import Entry
from tensortrail.tracer.noticing.fresh_memory import AT_THE_END, FreshMemory
from tensortrail.tracer.noticing.notes import Notes

MOST_SYNCS = 3
"""Of one weight that are looked after."""


class Synced(NamedTuple):
    """A weight that came from a file and then got other values."""

    line: str
    loaded: tuple[int, str, str] | None = None
    """The site of the load that wrote over these, its line and its file."""


class Loads:
    def __init__(self, notes: Notes, fresh: FreshMemory) -> None:
        self._notes = notes
        self._fresh = fresh
        self.files: dict[int, str] = {}
        """Storages that got values, and the file these came from."""
        self._ever: set[int] = set()
        """Those of them that once had the values of a file."""
        self._synced: dict[int, Synced] = {}
        self._syncs: Counter[int] = Counter()

    def gave(self, entry: Entry, file: str) -> None:
        """A reader made it."""
        self.files[entry.number] = file
        if file:
            self._ever.add(entry.number)

    def gave_to(self, tensor: Any) -> bool:
        known = self._notes.storages.known(tensor) if self.files else None
        return known is not None and known.number in self.files

    def file_of(self, tensors: Iterable[Any]) -> str:
        """Where most of these values came from."""
        known = self._notes.storages.all_known(tensors)
        files = Counter([self.files.get(each.number, "") for each in known])
        return files.most_common(1)[0][0] if files else ""

    def copied(self, source: Entry | None, copy: Entry | None) -> None:
        """Memory of its own, with the same values."""
        if source is None or copy is None or source is copy:
            return
        if source.number in self.files:
            self.files[copy.number] = self.files[source.number]
            if source.number in self._ever:
                self._ever.add(copy.number)

    def wrote(self, target: Entry, source: Entry) -> None:
        """The values of one were written into the other."""
        if source is target:
            return
        number, file = target.number, self.files.get(source.number, "")
        was_synced = self._synced.pop(number, None)
        if file and was_synced is not None and self._fresh.awaits(target):
            line = _line(self._notes.user_here())
            loaded = (self._notes.site_here(), line, file)
            self._synced[number] = was_synced._replace(loaded=loaded)
        elif not file and number in self._ever and target.name:
            self._await_sync(target)
        elif self._fresh.awaits(target):
            self._fresh.freed(number)
        self.files[number] = file
        if file:
            self._ever.add(number)

    def given(self, tensor: Any, source: Any) -> None:
        """A load has given it values, whether a copy was seen or not. A state dict that is loaded
        where it came from gives none."""
        known = self._notes.storages.known
        entry = known(tensor) if self._fresh.some else None
        if (
            entry is None
            or not self._fresh.awaits(entry)
            or (entry.number not in self._synced and known(source) is not entry)
        ):
            self._fresh.written(tensor)

    def _await_sync(self, entry: Entry) -> None:
        self._syncs[entry.number] += 1
        if self._syncs[entry.number] <= MOST_SYNCS:
            self._synced[entry.number] = Synced(_line(self._notes.user_here()))
            self._fresh.awaited(entry, self._read_synced)

    def _read_synced(self, entry: Entry, op: Any) -> None:
        synced = self._synced.pop(entry.number, None)
        if synced is None or synced.loaded is None or op == AT_THE_END:
            return
        site, line, file = synced.loaded
        facts = {
            "said": f"written at {line} with values of {file}",
            "synced": synced.line,
            "file": file,
            "read": f"`{self._notes.op_text(op)}` at {_line(self._notes.user_here())}",
        }
        self._notes.note_at(site, Did.HOOK, entry, op="overwritten", facts=facts)

    def freed(self, number: int) -> None:
        self.files.pop(number, None)
        self._ever.discard(number)
        self._synced.pop(number, None)
        self._syncs.pop(number, None)


def _line(place: Any) -> str:
    return f"{os.path.basename(place[0])}:{place[1]}" if place else "?"
