"""Where the last check saw the shapes of its findings, for files that have not changed since."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from zlib import crc32

from tensortrail.analyzer.judging.cache import Cache
from tensortrail.findings import Site

_Seen = dict[str, list[Site] | None]
"""The files that have the words of a shape, and its sites in those that were looked through."""


class ShapesSeen:
    """A file that is not named has been searched in vain: this holds for one list of files."""

    def __init__(self, cache: Cache, files: Sequence[str]) -> None:
        self._cache = cache
        self._listing = crc32("\n".join([os.getcwd(), *files]).encode(errors="replace"))
        self._before = _read(cache.seen, self._listing)
        self._now: dict[str, _Seen] = {}

    def unchanged(self, path: str) -> bool:
        return bool(self._before) and self._cache.unchanged(path)

    def knows(self, shape: str) -> bool:
        return shape in self._before

    def holders(self, shape: str) -> list[str]:
        """The unchanged files with the words of the shape."""
        before = self._before.get(shape, {})
        kept = {path: sites for path, sites in before.items() if self.unchanged(path)}
        self._now[shape] = kept
        return list(kept)

    def sites(self, shape: str, path: str) -> list[Site] | None:
        return self._now[shape].get(path)

    def put(self, shape: str, path: str, sites: list[Site] | None) -> None:
        self._now[shape][path] = sites

    def save(self) -> None:
        shapes = {shape: _as_data(seen) for shape, seen in self._now.items()}
        self._cache.see([self._listing, shapes])


def _read(stored: Any, listing: int) -> dict[str, _Seen]:
    try:
        made_of, shapes = stored
        if made_of != listing:
            return {}
        return {
            shape: {path: _sites(sites) for path, sites in seen.items()}
            for shape, seen in shapes.items()
        }
    except (AttributeError, TypeError, ValueError):
        return {}


def _sites(stored: Any) -> list[Site] | None:
    return None if stored is None else list(map(_site, stored))


def _site(stored: Any) -> Site:
    site = Site(**stored)
    if (type(site.file), type(site.line), type(site.column)) != (str, int, int):
        raise TypeError("no place in a file")
    return site


def _as_data(seen: _Seen) -> dict[str, Any]:
    return {
        path: None if sites is None else [asdict(site) for site in sites]
        for path, sites in seen.items()
    }
