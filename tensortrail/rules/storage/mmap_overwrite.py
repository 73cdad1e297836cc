from __future__ import annotations

import heapq
from collections.abc import Iterator

from tensortrail.findings import Edit, Finding, Fix, Safety, Severity
from tensortrail.rules import Did, Event, Rule, Timeline
from tensortrail.rules._seen import named, size

_IN_PLACE = ("torch.save",)
"""Writers that truncate the file they are given; others write a new one and rename it."""


class MmapOverwrite(Rule):
    """A file is written while tensors are still mapped from it.

    ## What it does
    Watches `torch.load(path, mmap=True)` and reads of safetensors, and speaks when `torch.save`
    is given the same path while one of those tensors is alive. Found in recorded runs only.

    ## Why is this bad?
    `torch.save` empties the file before it writes. The mapped tensors then have no bytes: the
    process dies with a bus error, often in the middle of the save, and leaves an empty file.

    ## Example
    ```python
    weights = torch.load("model.pt", mmap=True)
    torch.save(weights, "model.pt")
    ```
    Use instead:
    ```python
    weights = torch.load("model.pt", mmap=True)
    torch.save(weights, "model.pt.new")
    os.replace("model.pt.new", "model.pt")
    ```

    ## Fix safety
    For display only: the file has to be renamed afterwards.

    ## References
    - pytorch/pytorch documentation of `torch.load`, parameter `mmap`
    """

    code = "STO206"
    name = "mmap-overwrite"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        mapped: dict[str, dict[tuple[str, int], Event]] = {}
        owner: dict[tuple[str, int], str] = {}
        for event in _relevant(timeline):
            path = str(event.facts.get("path") or "")
            if event.did is Did.LOAD and event.storage and path and event.facts.get("mapped"):
                mapped.setdefault(path, {})[event.storage.key] = event
                owner[event.storage.key] = path
            elif event.did is Did.FREE and event.storage and event.storage.key in owner:
                mapped[owner.pop(event.storage.key)].pop(event.storage.key, None)
            elif event.storage is None and event.op in _IN_PLACE and mapped.get(path):
                yield self._overwritten(timeline, event, path, list(mapped.pop(path).values()))

    def _overwritten(
        self, timeline: Timeline, event: Event, path: str, loads: list[Event]
    ) -> Finding:
        storages = [each.storage for each in loads if each.storage]
        held = sum(each.nbytes for each in storages)
        return self.seen(
            timeline,
            event,
            f"`{event.op}` overwrites {path}, from which {named(timeline, storages)} "
            f"({size(held)}) {'is' if len(storages) == 1 else 'are'} still mapped: the process "
            "dies when they are read",
            about=storages[0],
            fixes=[_elsewhere(timeline, event)],
            evidence={"tensors": str(len(loads)), "mapped": size(held)},
        )


def _relevant(timeline: Timeline) -> Iterator[Event]:
    """Frees are looked at only in runs that map files at all."""
    loads = [each for each in timeline.events(Did.LOAD) if each.facts.get("mapped")]
    if not loads:
        return iter(())
    return heapq.merge(loads, timeline.events(Did.FREE, Did.SAVE), key=lambda event: event.time)


def _elsewhere(timeline: Timeline, event: Event) -> Fix | None:
    place = timeline.argument(event.site, "save", 1) if event.site else None
    if place is None:
        return None
    edit = Edit(place, f"{place.source} + '.new'")
    return timeline.fix("write beside it, then `os.replace`", Safety.DISPLAY, edit)
