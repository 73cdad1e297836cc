"""The page stays small: strings, lines and storages are written once and then named by number."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Any

from tensortrail.findings import Site
from tensortrail.rules.timeline import Storage
from tensortrail.tracer.exports.page_storages import Chosen
from tensortrail.tracer.reading import sentences
from tensortrail.tracer.reading.storage_names import names
from tensortrail.tracer.reading.timeline import RunTimeline

LONGEST_TEXT = 4000


class PageNumbers:
    """The part of `PageData` that does so."""

    def __init__(self, timeline: RunTimeline) -> None:
        self.timeline = timeline
        self.names = {process.label: names(process) for process in timeline.processes}
        self._texts: dict[str, int] = {}
        self._sites: dict[Site, int] = {}
        self._places: dict[tuple[str, int], int] = {}

    def text(self, text: str) -> int:
        return self._texts.setdefault(text[:LONGEST_TEXT], len(self._texts))

    def site(self, site: Site | None) -> int:
        return -1 if site is None else self._sites.setdefault(site, len(self._sites))

    def place(self, storage: Storage | None) -> int:
        """Where among the storages of the page; -1 if it is not on it."""
        return self.place_of(*storage.key) if storage else -1

    def place_of(self, process: str, number: int) -> int:
        return self._places.get((process, number), -1)

    def name(self, storage: Storage) -> str:
        return self.names[storage.process].get(storage.number) or sentences.described(storage)

    def number(self, chosen: Iterable[Chosen]) -> None:
        for each in chosen:
            label = each.lives.process.label
            for number in each.counts:
                self._places[label, number] = len(self._places)

    def told_texts(self) -> list[str]:
        return list(self._texts)

    def told_sites(self) -> list[list[Any]]:
        # By file, so that each is read once.
        source = {
            site: site.source or self.timeline.line(site)
            for site in sorted(self._sites, key=attrgetter("file"))
        }
        return [
            [
                self.text(site.file),
                site.line,
                self.text(site.function),
                self.text(source[site].strip()),
            ]
            for site in self._sites
        ]
