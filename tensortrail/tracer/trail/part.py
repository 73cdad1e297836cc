"""The trail of one process: rows become what the numbers in its events mean."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tensortrail.tracer.trail.headers import LEFT, LONGEST_LABEL, header_of
from tensortrail.tracer.trail.layout import (
    CONTEXT,
    EVENT,
    FREED,
    FREED_KIND,
    KIND,
    KINDS,
    NAME,
    SHORT,
    SITE,
    SOURCE,
    STORAGE,
    TEXT,
    Row,
)


@dataclass
class Part:
    """The trail of one process."""

    path: str
    header: Mapping[str, Any] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=lambda: {0: ""})
    sites: dict[int, Row] = field(default_factory=dict)
    contexts: dict[int, Row] = field(default_factory=dict)
    storages: dict[int, Row] = field(default_factory=dict)
    names: dict[int, list[int]] = field(default_factory=dict)
    sources: dict[int, str] = field(default_factory=dict)
    """The digests of files, by the numbers of their names."""
    kinds: dict[int, Row] = field(default_factory=lambda: {FREED: FREED_KIND})
    """What short events have in common with others."""
    rows: list[Row] = field(default_factory=list)
    """The events in order of time, each of full length."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    closed: bool = False
    outcome: str = ""
    """What ended the program, if it did not end well and the file was closed."""
    left: frozenset[int] = frozenset()
    """Children that were to end with this process, by their numbers."""
    damage: str = ""

    def text(self, number: int) -> str:
        return self.texts.get(number, "?")


FORMS: dict[int, tuple[type, ...]] = {
    TEXT: (int, int, str),
    SITE: (int,) * 8,
    CONTEXT: (int,) * 4,
    STORAGE: (int, int, int, int, int, tuple, int),
    NAME: (int, int, int),
    SOURCE: (int, int, str),
}
WHOLE = {int}
KIND_FORM: tuple[type, ...] = (*(int,) * 6, tuple, dict)
DESCRIPTION: tuple[type, ...] = (int, int, int, tuple, int)
NO_FACTS: Mapping[str, Any] = {}
PADDING: Row = (0, 0, 0, 0, 0, 0, 0, NO_FACTS)
EVENT_FORM: tuple[type, ...] = (*(int,) * 7, dict)
LAST = EVENT + len(KINDS)


def take(part: Part, rows: list[Any]) -> bool:
    """Whether all of them were understood."""
    events: list[Row] = []
    others: dict[int, list[Row]] = defaultdict(list)
    misfits = 0
    for row in rows:
        if type(row) is tuple and row and type(code := row[0]) is int:
            if EVENT <= code < LAST:
                events.append(row + PADDING[len(row) :] if len(row) < 8 else row)
            elif code == SHORT:
                misfits += _lengthened(part, row, events)
            elif code == KIND:
                misfits += not _take_kind(part, row)
            elif code in FORMS:
                others[code].append(row)
        elif isinstance(row, dict):
            _note(part, row)
        else:
            misfits += 1
    taken = _keep(part, events) + _keep_others(part, others)
    return not misfits and taken == len(events) + sum(map(len, others.values()))


def _keep(part: Part, events: list[Row]) -> int:
    """How many of them are sound."""
    part.rows += (kept := _of_form(events, EVENT_FORM))
    return len(kept)


def _keep_others(part: Part, others: Mapping[int, list[Row]]) -> int:
    """What the numbers in events mean; how many of these rows are sound."""
    sound = {code: _of_form(each, FORMS[code]) for code, each in others.items()}
    sound[STORAGE] = [row for row in sound.get(STORAGE, ()) if set(map(type, row[5])) <= WHOLE]
    part.texts.update((number, text) for _, number, text in sound.get(TEXT, ()))
    part.sites.update((row[1], row) for row in sound.get(SITE, ()))
    part.contexts.update((row[1], row) for row in sound.get(CONTEXT, ()))
    part.storages.update((row[1], row) for row in sound[STORAGE])
    for _, storage, name in sound.get(NAME, ()):
        part.names.setdefault(storage, []).append(name)
    part.sources.update((file, digest) for _, file, digest in sound.get(SOURCE, ()))
    return sum(map(len, sound.values()))


def _take_kind(part: Part, row: Row) -> bool:
    row = row if len(row) > 7 else (*row, NO_FACTS)
    if tuple(map(type, row)) != KIND_FORM or not EVENT <= row[2] < LAST:
        return False
    if row[6] and (
        tuple(map(type, row[6])) != DESCRIPTION or not set(map(type, row[6][3])) <= WHOLE
    ):
        return False
    part.kinds[row[1]] = row[2:]
    return True


def _lengthened(part: Part, row: Row, events: list[Row]) -> int:
    """Short events as they would be otherwise; how many of them make no sense."""
    if set(map(type, row)) != WHOLE or len(row) % 4 != 1:
        return 1
    kinds, storages, misfits = part.kinds, part.storages, 0
    for kind, time, storage, other in zip(row[1::4], row[2::4], row[3::4], row[4::4], strict=True):
        if (said := kinds.get(kind)) is None:
            misfits += 1
            continue
        code, context, site, op, description, facts = said
        events.append((code, time, context, site, storage, other, op, facts))
        if description:
            storages[storage] = (STORAGE, storage, *description)
    return misfits


def _of_form(rows: list[Row], form: tuple[type, ...]) -> list[Row]:
    """The rows whose items are of these types; by columns, since nearly always all are."""
    if {len(form)} == set(map(len, rows)) and all(
        {kind} == set(map(type, column))
        for column, kind in zip(zip(*rows, strict=True), form, strict=True)
    ):
        return rows
    return [row for row in rows if tuple(map(type, row)) == form]


def _note(part: Part, note: dict[Any, Any]) -> None:
    if "version" in note:
        part.header = header_of(note)
    elif type(rank := note.get("rank")) is int:
        part.header = {**part.header, "rank": rank}
    elif isinstance(libraries := note.get("libraries"), dict):
        known = {str(name): str(version)[:LONGEST_LABEL] for name, version in libraries.items()}
        part.header = {**part.header, "libraries": known}
    elif isinstance(left := note.get(LEFT), (list, tuple)):
        part.left = frozenset(each for each in left if type(each) is int)
    if "end" in note:
        part.closed = True
        part.outcome = str(note.get("outcome") or "")[:LONGEST_LABEL]
        dropped = note.get("dropped")
        if isinstance(dropped, dict):
            part.dropped = {str(k): n for k, n in dropped.items() if type(n) is int}
