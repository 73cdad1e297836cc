"""An asynchronous save is pending until somebody waits for its result."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.identity.storages import Entry

OP = "dcp.async_save"


@dataclass(eq=False)
class Save:
    path: str
    future: Any = None
    site: int = 0
    staged: dict[int, Entry] = field(default_factory=dict)
    """The memory it was staged into, which is read until the save is done."""
    told: bool = False

    @property
    def is_open(self) -> bool:
        return self.future is not None and not self.future.done()


class Pending:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._saves: list[Save] = []
        self.current: Save | None = None
        """The save that is being staged."""
        recorder.at_fork.append(self._saves.clear)

    def begin(self, path: str) -> Save:
        """The next one comes and will write there: tell of those that are not done."""
        self._saves[:] = [each for each in self._saves if each.is_open]
        for each in self._saves:
            if not each.told:
                each.told = True
                facts = {"next": OP, "path": each.path, "next_path": path}
                self._recorder.note(Did.PENDING, op=OP, facts=facts)
        self.current = Save(path)
        return self.current

    def add(self, save: Save, answer: Any) -> None:
        future = getattr(answer, "upload_completion", answer)
        if callable(getattr(future, "done", None)):
            save.future, save.site = future, self._recorder.site_here()
            self._saves.append(save)

    def staged(self, save: Save | None, entries: list[Entry], site: int) -> None:
        """Memory was filled for a save. An earlier one may still be reading it."""
        numbers = {each.number: each for each in entries}
        for each in self._saves:
            shared = each.staged.keys() & numbers.keys() if each is not save else ()
            if shared and each.is_open:
                facts = {"next": OP, "path": each.path, "shared": len(shared)}
                entry = numbers[min(shared)]
                self._recorder.note_at(site, Did.PENDING, entry, op=OP, facts=facts)
        if save is not None:
            save.staged |= numbers

    def at_end(self) -> None:
        for each in self._saves:
            if each.is_open and not each.told:
                facts = {"next": "the end of the recording", "path": each.path}
                self._recorder.note_at(each.site, Did.PENDING, op="exit", facts=facts)
        self._saves.clear()
