"""What the last check found, for files that have not changed since.

Reading it must not import the rules: a clean warm run is a listing and one JSON file."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from typing import Any

from tensortrail.analyzer.atomic import write
from tensortrail.analyzer.codec import from_data, to_data
from tensortrail.analyzer.request import FileResult
from tensortrail.findings import Finding

FILE = "findings.json"
_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n"

Stamp = list[int]
"""Size and modification time in nanoseconds."""


class Cache:
    """Clean files are kept as their stamp alone, so that they cost next to nothing."""

    def __init__(self, folder: str | None, fingerprint: str) -> None:
        self._folder = folder
        self._fingerprint = fingerprint
        self._entries: dict[str, Any] = {}
        self._stamps: dict[str, Stamp | None] = {}
        self._changed = False
        if folder is not None:
            self._entries = _read(os.path.join(folder, FILE), fingerprint)

    def get(self, path: str) -> list[Finding] | None:
        """The findings of an unchanged file; None if it must be judged."""
        entry = self._entries.get(path)
        if not isinstance(entry, list) or len(entry) not in (2, 4):
            return None
        if entry[:2] != self._stamp(path):
            return None
        if len(entry) == 2:
            return []
        found, needs = entry[2], entry[3]
        if not isinstance(found, list) or not isinstance(needs, dict):
            return None
        for needed, stamp in needs.items():
            if self._stamp(needed) != stamp:
                return None
        return list(map(from_data, found))

    def put(self, result: FileResult) -> None:
        stamp = self._stamp(result.path)
        if self._folder is None or stamp is None:
            return
        stamps = {needed: self._stamp(needed) for needed in result.needs}
        entry: list[Any] = list(stamp)
        if result.findings or stamps:
            entry += [list(map(to_data, result.findings)), stamps]
        if self._entries.get(result.path) != entry:
            self._entries[result.path] = entry
            self._changed = True

    def save(self, files: Iterable[str]) -> None:
        """Write atomically; a cache that cannot be written is none, and no error."""
        if self._folder is None or not self._changed:
            return
        gone = [path for path in self._entries if self._stamp(path) is None]
        for path in gone:
            del self._entries[path]
        try:
            _prepare(self._folder)
            stored = json.dumps([self._fingerprint, self._entries], separators=(",", ":"))
            write(os.path.join(self._folder, FILE), stored.encode())
        except OSError:
            return

    def _stamp(self, path: str) -> Stamp | None:
        if path not in self._stamps:
            try:
                status = os.stat(path)
                self._stamps[path] = [status.st_size, status.st_mtime_ns]
            except (OSError, ValueError):
                self._stamps[path] = None
        return self._stamps[path]


def fingerprint(*parts: object) -> str:
    """Of the installed tool's own files and whatever else decides about findings."""
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    stamps = []
    for name in ("findings.py", "analyzer", "rules"):
        stamps += sorted(_stamps_below(os.path.join(own, name)))
    return json.dumps([stamps, _installed(), *map(repr, parts)])


def _installed() -> list[list[object]]:
    """Changes when a package is installed or removed: it may bring rules by entry point."""
    return [
        [folder, os.stat(folder).st_mtime_ns]
        for folder in sys.path
        if folder.endswith(("site-packages", "dist-packages")) and os.path.isdir(folder)
    ]


def _stamps_below(path: str) -> list[list[object]]:
    if not os.path.isdir(path):
        status = os.stat(path)
        return [[os.path.basename(path), status.st_size, status.st_mtime_ns]]
    found: list[list[object]] = []
    with os.scandir(path) as scan:
        for entry in scan:
            if entry.is_dir():
                found += _stamps_below(entry.path) if entry.name != "__pycache__" else []
            elif entry.name.endswith(".py"):
                status = entry.stat()
                found.append([entry.name, status.st_size, status.st_mtime_ns])
    return found


def _read(file: str, fingerprint: str) -> dict[str, Any]:
    try:
        with open(file, encoding="utf-8") as handle:
            stored = json.load(handle)
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(stored, list) or len(stored) != 2 or stored[0] != fingerprint:
        return {}
    return stored[1] if isinstance(stored[1], dict) else {}


def _prepare(folder: str) -> None:
    os.makedirs(folder, exist_ok=True)
    for name, text in ((".gitignore", "*\n"), ("CACHEDIR.TAG", _TAG)):
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            with open(path, "w", encoding="utf-8") as handle:
                handle.write(text)
