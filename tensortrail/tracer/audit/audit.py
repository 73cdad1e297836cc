"""The audit of a run: snapshots by name, in memory and as files beside the trail."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from torch.nn import Module

from tensortrail.tracer.audit.collecting import marks_of, tensors_of
from tensortrail.tracer.audit.comparison import Comparison
from tensortrail.tracer.audit.snapshot import Snapshot
from tensortrail.tracer.events.names_at_end import outermost_modules
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.noticing.last_writers import LastWriters
from tensortrail.tracer.trail.kept_runs import SNAPSHOT

MOST_BY_ITSELF = 12
"""Snapshots that are taken without being asked for, before the last."""
AT_THE_END = "the end"
AUDITED = {("load", False): "after the load", ("checkpoint", True): "before the save"}
"""Phases and whether they began -> when that is."""


class Audit:
    def __init__(self, recorder: Recorder, directory: str, rank: int | None) -> None:
        self._recorder = recorder
        self._directory = directory
        self._rank = rank
        self._count = 0
        self.taken: list[Snapshot] = []
        self._of_all: list[Snapshot] = []
        """Those of all models."""

    def begin(self) -> None:
        """Look at weights after each load and before each save, and keep who wrote them last."""
        self._recorder.last_writers = LastWriters(self._recorder)
        self._recorder.phases.changed = self._phase_changed
        self._recorder.changed()

    def _phase_changed(self, name: str, began: bool) -> None:
        if not self._recorder.active or (name, began) not in AUDITED:
            return
        place = self._recorder.user_here()
        where = f" at {os.path.basename(place[0])}:{place[1]}" if place is not None else ""
        self._by_itself(f"{AUDITED[name, began]}{where}")

    def _by_itself(self, name: str) -> None:
        """At a moment that the recording found worth it, if there are weights by now."""
        if self._count < MOST_BY_ITSELF:
            self._count += 1
            self._recorder.guarded(lambda _: self.snapshot(name))

    def snapshot(self, name: str, model: Module | None = None) -> Snapshot:
        """Of one model, or of all that are alive."""
        recorder = self._recorder
        was, recorder.active = recorder.active, False
        try:
            recorder.models.look_here()
            marks = marks_of(self._tensors(model), self._writer, _home(recorder))
        finally:
            recorder.active = was
        made = Snapshot(name, marks, rank=self._rank)
        self.taken.append(made)
        if model is None:
            self._of_all.append(made)
        made.save(os.path.join(self._directory, self._file(name)))
        return made

    def compare(self, before: str, after: str) -> Comparison:
        first, last = self._place(before), self._place(after)
        between = self.taken[first + 1 : last]
        return self.taken[first].compare(self.taken[last], between)

    def told(self) -> Iterator[str]:
        """What became of all weights from each snapshot to the next."""
        for before, after in zip(self._of_all, self._of_all[1:], strict=False):
            if before.marks:
                told = before.compare(after)
                yield from str(told).splitlines()[: 1 if told.same else None]

    def _place(self, name: str) -> int:
        names = [each.name for each in self.taken]
        if name not in names:
            known = ", ".join(dict.fromkeys(names)) or "none"
            raise KeyError(f"there is no snapshot {name!r}; there are: {known}")
        return len(names) - 1 - names[::-1].index(name)

    def _tensors(self, model: Module | None) -> Iterator[tuple[str, Any]]:
        known: set[str] = set()
        for root in [model] if model is not None else outermost_modules():
            name = self._recorder.models.of(root)
            while name in known:
                name += "'"
            known.add(name)
            yield from tensors_of(root, name)

    def _writer(self, part: Any) -> tuple[str, int]:
        writers = self._recorder.last_writers
        known = self._recorder.storages.known(part) if writers is not None else None
        return writers.of(known) if writers is not None else ("", 0)

    def _file(self, name: str) -> str:
        rank = f"rank{self._rank}-" if self._rank is not None else ""
        words = re.sub(r"[^\w-]+", "-", name)[:60]
        return f"{rank}{len(self.taken):03}-{words}{SNAPSHOT}"


def _home(recorder: Recorder) -> Any:
    def home(part: Any) -> str:
        entry = recorder.storages.known(part)
        return entry.device if entry is not None else str(part.device)

    return home
