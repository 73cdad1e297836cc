"""What a run knows of each line of its program, for whoever shows it beside the code."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tensortrail.findings import Site
from tensortrail.rules.timeline import Did, Event, Storage
from tensortrail.tracer.reading import sentences
from tensortrail.tracer.reading.assigned_names import assigned
from tensortrail.tracer.reading.timeline import RunTimeline

SHOWN = (Did.CREATE, Did.LOAD, Did.MOVE, Did.COPY, Did.SAVE)
_MADE = (Did.CREATE, Did.LOAD)


@dataclass
class Fact:
    """What happened on a line in one way, however often."""

    did: Did
    op: str
    source: str
    """The device before, of a move or copy."""
    device: str
    by: str
    """The line of a library that did it, as `hooks.py:40`."""
    count: int = 0
    nbytes: int = 0
    tensor: str = ""
    """What the last one is called; "" if nothing has a name for it."""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    made: str = ""
    """Where the last one was made, if elsewhere: `model.py:12`."""
    moves: int = 0
    """Of the last one, up to the end of the run."""

    def __str__(self) -> str:
        """One line for people."""
        what = f"`{self.tensor}`" if self.tensor else "a tensor"
        kind = " ".join(filter(None, (self.dtype, "x".join(map(str, self.shape)))))
        many = f"{self.count}x, {sentences.size(self.nbytes)}"
        by = f", for {self.by}" if self.by else ""
        made = f"; made {self.made}" if self.made else ""
        moved = f", moved {self.moves}x in the run" if self.moves else ""
        return f"{what} {kind} {self._verb} by {self.op} ({many}){by}{made}{moved}"

    @property
    def _verb(self) -> str:
        if self.did in (Did.MOVE, Did.COPY):
            verb = "moved" if self.did is Did.MOVE else "copied"
            return f"{verb} {self.source} -> {self.device}"
        return {Did.SAVE: "saved from", Did.LOAD: "loaded to"}.get(self.did, "made on") + (
            f" {self.device}"
        )


@dataclass
class FileFacts:
    file: str
    digest: str
    """SHA-256 of the file that ran; "" if that is not known."""
    changed: str
    """Why the file is another one now; "" if it is not."""
    lines: dict[int, list[Fact]] = field(default_factory=dict)
    recorded: set[int] = field(default_factory=set)
    """Lines that any event has, also those of which nothing is told."""


def facts_of(timeline: RunTimeline) -> dict[str, FileFacts]:
    """By file, with whole paths."""
    groups: dict[tuple[object, ...], list[Event]] = defaultdict(list)
    for event in timeline.iterate(*SHOWN):
        if event.site is not None and event.storage is not None:
            groups[_way(event)].append(event)
    variables = {storage.key: name for name, storage in assigned(timeline).items()}
    files: dict[str, FileFacts] = {}
    for events in groups.values():
        site = events[0].site
        assert site is not None
        path = os.path.realpath(site.file)
        if path not in files:
            files[path] = file_facts(path, timeline)
        fact = _fact(events, timeline, variables)
        files[path].lines.setdefault(site.line, []).append(fact)
    for visited, _ in timeline.visits():
        if known := files.get(os.path.realpath(visited.file)):
            known.recorded.add(visited.line)
    return files


def _way(event: Event) -> tuple[object, ...]:
    site, by = event.site, event.by
    assert site is not None
    assert event.storage is not None
    source = event.other.device if event.other else ""
    return (
        site.file, site.line, event.did, event.op, source, event.storage.device,
        (by.file, by.line) if by else None,
    )  # fmt: skip


def _fact(
    events: Sequence[Event], timeline: RunTimeline, variables: Mapping[tuple[str, int], str]
) -> Fact:
    last = events[-1]
    storage = last.storage
    assert storage is not None
    history = timeline.history(storage)
    made = next((each for each in history if each.did in _MADE), None)
    elsewhere = made is not None and made.site is not None and made.site != last.site
    return Fact(
        last.did,
        last.op,
        last.other.device if last.other else "",
        storage.device,
        _place(last.by),
        len(events),
        sum(each.storage.nbytes for each in events if each.storage is not None),
        _name(storage, timeline, variables),
        storage.dtype,
        storage.shape,
        _place(made.site) if elsewhere and made is not None else "",
        sum(each.did is Did.MOVE for each in history),
    )


def _name(storage: Storage, timeline: RunTimeline, variables: Mapping[tuple[str, int], str]) -> str:
    if timeline.is_named(storage):
        return timeline.name(storage)
    return variables.get(storage.key, "")


def _place(site: Site | None) -> str:
    return site.short_place if site is not None else ""


def file_facts(path: str, timeline: RunTimeline) -> FileFacts:
    """Of a file of which nothing is told yet."""
    changed = timeline.changed(path)
    return FileFacts(path, timeline.ran.digest(path), changed)
