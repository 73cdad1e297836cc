"""A Timeline is a run read back: rules, reports and explanations work on it."""

from __future__ import annotations

import ast
import copy
import heapq
import math
import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from operator import attrgetter
from typing import Any

from tensortrail.findings import Edit, Fix, Safety, Site, Step
from tensortrail.rules.timeline import Did, Event, Gone, Storage
from tensortrail.tracer.reading import sentences, source_lines
from tensortrail.tracer.reading.beginning import first_event
from tensortrail.tracer.reading.failed_tests import end_of_test
from tensortrail.tracer.reading.interrupted import interrupted
from tensortrail.tracer.reading.process import LINEAGE_CODES, Process
from tensortrail.tracer.reading.process_end import end_of, gone
from tensortrail.tracer.reading.storage_names import name_of
from tensortrail.tracer.trail.layout import CODE
from tensortrail.tracer.trail.outcome import KILLED, ended_well, without_end
from tensortrail.tracer.trail.part import Part
from tensortrail.tracer.trail.run_files import read_parts


class RunTimeline:
    """Implements `rules.Timeline`."""

    def __init__(self, parts: Sequence[Part], trouble: Sequence[str] = ()) -> None:
        self.parts = parts
        self.trouble = tuple(trouble)
        self.began = min(map(first_event, parts))
        """On the clock of the machine, in seconds."""
        self.processes = [Process(part, label, self.began) for part, label in _labelled(parts)]
        self._by_label = {process.label: process for process in self.processes}

    @property
    def rank(self) -> int | None:
        """The rank of its first process."""
        rank = self.processes[0].part.header.get("rank")
        return rank if isinstance(rank, int) else None

    @property
    def label(self) -> str:
        """The label of a rank and its children."""
        return self.processes[0].label if self.rank is None else f"rank {self.rank}"

    def by_rank(self) -> list[RunTimeline]:
        """A timeline for each rank, with its children, and one for what has no rank; this one if
        there is nothing to part."""
        ranks: dict[Any, list[Process]] = {}
        for process in self.processes:
            ranks.setdefault(process.part.header.get("rank"), []).append(process)
        return [self._of(each) for each in ranks.values()] if len(ranks) > 1 else [self]

    def of_parts(self, parts: Sequence[Part]) -> RunTimeline:
        """Some of its processes; the others are still known as their parents."""
        return self._of([each for each in self.processes if each.part in parts])

    def _of(self, processes: list[Process]) -> RunTimeline:
        made = copy.copy(self)
        made.processes = processes
        made.parts = [each.part for each in processes]
        return made

    def events(self, *kinds: Did) -> Sequence[Event]:
        return list(self.iterate(*kinds))

    def iterate(self, *kinds: Did) -> Iterator[Event]:
        codes = {CODE[kind] for kind in kinds}
        streams = [map(each.event, each.rows_of(codes)) for each in self.processes]
        if len(streams) == 1:
            return streams[0]
        return heapq.merge(*streams, key=lambda event: event.time)

    def ended_well(self) -> bool:
        return ended_well(self.parts)

    def cut_short(self) -> Sequence[Event]:
        return [
            event
            for each in self.processes
            if not each.part.closed and without_end(each.part) == KILLED
            for event in interrupted(each, self.began)
        ]

    def gone(self) -> Sequence[Gone]:
        found = (gone(end_of(each, self.began)) for each in self.processes)
        return sorted((each for each in found if each is not None), key=attrgetter("time"))

    def history(self, storage: Storage, until: Event | None = None) -> Sequence[Event]:
        events: list[Event] = []
        seen: set[tuple[str, int]] = set()
        todo = [(self._by_label[storage.process], storage.number, math.inf)]
        while todo:
            process, number, end = todo.pop()
            if (process.label, number) in seen:
                continue
            seen.add((process.label, number))
            for row in process.by_storage.get(number, ()):
                if row[4] == number and (event := process.event(row)).time <= end:
                    events.append(event)
                    if row[0] in LINEAGE_CODES and row[5]:
                        todo.append((process, row[5], end))
            if parent := self._parent(process, number):
                todo.append((parent, number, process.offset))
        events.sort(key=attrgetter("time"))
        return [event for event in events if until is None or event.time <= until.time]

    def _parent(self, process: Process, number: int) -> Process | None:
        """Where a storage comes from that was there when this process was forked."""
        header = process.part.header
        if number >= (header.get("first_storage") or 0):
            return None
        pid = header.get("parent")
        everyone = self._by_label.values()
        return next((each for each in everyone if each.part.header.get("pid") == pid), None)

    def after(self, event: Event) -> Iterator[Event]:
        process = self._by_label[event.process]
        if event.did is Did.ERROR and event.facts.get("number") in process.escaped_errors:
            return
        rows = process.part.rows
        first = bisect_right(rows, event.time, key=process.time)
        end = end_of_test(first, process.failed_tests, len(rows))
        for place in range(end - 1, first - 1, -1):
            later = process.event(rows[place])
            if later.thread == event.thread:
                yield later

    def in_passed_test(self, event: Event) -> bool:
        return event.time <= self._by_label[event.process].passed_tests.get(event.phase, -1.0)

    def storage(self, process: str, number: int) -> Storage | None:
        return self._by_label[process].storage(number)

    def here(self, number: int) -> Storage | None:
        own = (p for p in self.processes if p.part.header.get("pid") == os.getpid())
        process = next(own, self.processes[0])
        return process.storage(number)

    def name(self, storage: Storage) -> str:
        return self._given_name(storage) or sentences.described(storage)

    def is_named(self, storage: Storage) -> bool:
        return bool(self._given_name(storage))

    def _given_name(self, storage: Storage) -> str:
        return name_of(self._by_label[storage.process], storage.number)

    def _in_a_trail(self, storage: Storage) -> str:
        """Its name, or what the line that failed with it calls it."""
        return self._given_name(storage) or self._variables.get(storage.key) or self.name(storage)

    @cached_property
    def _variables(self) -> dict[tuple[str, int], str]:
        """How lines that failed call the storages of their operands that have no name."""
        return {
            (event.process, given["storage"]): str(given["name"])
            for event in self.events(Did.ERROR)
            for given in event.facts.get("operands") or ()
            if isinstance(given, dict) and given.get("storage") and given.get("name")
        }

    def visits(self) -> Iterator[tuple[Site, int]]:
        """The lines of users and libraries, each with how many events it has."""
        for process in self.processes:
            for number, count in Counter(row[3] for row in process.part.rows).items():
                for site in process.site(number):
                    if site is not None:
                        yield site, count

    def line(self, site: Site) -> str:
        return source_lines.line(site, self.ran)

    @property
    def started(self) -> float:
        return min(float(part.header.get("start") or 0) for part in self.parts)

    @cached_property
    def ran(self) -> source_lines.Ran:
        digests: dict[str, str] = {}
        for part in self.parts:
            for number, digest in part.sources.items():
                file = os.path.realpath(part.text(number))
                digests[file] = digest if digests.get(file, digest) == digest else ""
        return source_lines.Ran(self.started, digests)

    def steps(self, events: Sequence[Event]) -> tuple[Step, ...]:
        steps = (
            Step(self.dressed(at), sentences.sentence(event, self._in_a_trail))
            for event in telling(events)
            if (at := event.site or event.by) is not None
        )
        return tuple(dict.fromkeys(steps))

    def dressed(self, site: Site) -> Site:
        """The place as reports show it: its line beside it, its path as short as it can be."""
        text = source_lines.whole_line(site, self.ran)
        body = text.strip()
        column = len(text) - len(text.lstrip()) + 1 if body else 1
        return replace(
            site,
            file=sentences.below_here(site.file),
            column=site.column if site.start >= 0 else column,
            end_column=site.end_column if site.start >= 0 else column + len(body),
            source=text,
        )

    def call(self, site: Site, function: str) -> Site | None:
        return source_lines.call(site, function, self.ran)

    def argument(self, site: Site, function: str, position: int = 0) -> Site | None:
        return source_lines.argument(site, function, position, self.ran)

    def changed(self, file: str) -> str:
        return source_lines.changed(file, self.ran)

    def tree(self, file: str) -> ast.Module | None:
        return source_lines.tree(file, self.ran)

    def replace(self, file: str, node: ast.AST, text: str) -> Edit:
        return source_lines.replace(file, node, text, self.ran)

    def insert(self, file: str, line: int, text: str) -> Edit:
        return source_lines.insert(file, line, text, self.ran)

    def fix(self, description: str, safety: Safety, *edits: Edit) -> Fix | None:
        return source_lines.fix(description, safety, edits)


def telling(events: Sequence[Event]) -> Iterator[Event]:
    """The events without what only follows from a move on the same line: the parameter that then
    holds the moved bytes, the module whose parameters moved, the library call inside of another."""
    moved = {(each.storage, each.site) for each in events if each.did is Did.MOVE}
    outermost = {each.site: each for each in events if each.did is Did.HOOK}
    for event in events:
        follows = event.did in (Did.SWAP, Did.MODULE) and (event.storage, event.site) in moved
        inside = event.did is Did.HOOK and event is not outermost[event.site]
        if not follows and not (inside and (event.storage, event.site) in moved):
            yield event


def open_run(path: str | os.PathLike[str]) -> RunTimeline:
    return RunTimeline(*read_parts(path))


def _labelled(parts: Sequence[Part]) -> Iterator[tuple[Part, str]]:
    taken: set[str] = set()
    for part in parts:
        label = _label(part.header)
        while label in taken:
            label += "'"
        taken.add(label)
        yield part, label


def _label(header: Any) -> str:
    rank, pid, worker = (header.get(key) for key in ("rank", "pid", "worker"))
    label = "main" if rank is None else f"rank {rank}"
    return f"{label}, {worker} {pid}" if worker else label
