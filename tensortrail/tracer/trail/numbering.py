"""Texts, places and contexts are written once into a trail, and then named by number."""

from __future__ import annotations

from itertools import count
from typing import Any

from tensortrail.tracer.trail.layout import CONTEXT, SITE, SOURCE, TEXT
from tensortrail.tracer.trail.source_digest import source_digest

LONGEST_TEXT = 1000
MOST_TEXTS = 200_000
MOST_CONTEXTS = 10_000


class Numbering:
    """The part of `TrailWriter` that does so."""

    def __init__(self, started: float) -> None:
        self.started = started
        self._rows: list[Any] = []
        """What waits to be written."""
        # A number may be given twice when threads race; the rows of both say the same.
        self._texts: dict[str, int] = {"": 0}
        self._text_numbers = count(1)
        self._sites: dict[tuple[Any, ...], int] = {}
        self._site_numbers = count(1)
        self._sources = {""}
        self._contexts: dict[tuple[str, str], int] = {}
        self._context_numbers = count(1)

    def text(self, text: str) -> int:
        number = self._texts.get(text)
        if number is None:
            if len(self._texts) >= MOST_TEXTS:
                return self.text("...")
            number = self._texts[text] = next(self._text_numbers)
            self._rows.append((TEXT, number, text[:LONGEST_TEXT]))
        return number

    def site(self, file: str, line: int, function: str, by: tuple[str, int, str]) -> int:
        key = (file, line, function, *by)
        number = self._sites.get(key)
        if number is None:
            user, below = (self._source(file), line, self.text(function)), (self.text(by[0]), by[1])
            number = self._sites[key] = next(self._site_numbers)
            self._rows.append((SITE, number, *user, *below, self.text(by[2])))
        return number

    def _source(self, file: str) -> int:
        number = self.text(file)
        if file not in self._sources:
            self._sources.add(file)
            if digest := source_digest(file, self.started):
                self._rows.append((SOURCE, number, digest))
        return number

    def context(self, thread: str, phase: str) -> int:
        number = self._contexts.get((thread, phase))
        if number is None:
            if len(self._contexts) >= MOST_CONTEXTS:
                return 0
            number = self._contexts[thread, phase] = next(self._context_numbers)
            self._rows.append((CONTEXT, number, self.text(thread), self.text(phase)))
        return number
