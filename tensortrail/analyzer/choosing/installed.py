"""What is installed, in numbers that change with it: the tool's own files, and other packages."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

import tensortrail

Stamps = list[list[object]]
OWN = os.path.dirname(tensortrail.__file__)


def own_files(*names: str) -> Stamps:
    """Of the sources below these parts of the tool."""
    return [each for name in names for each in sorted(_below(os.path.join(OWN, name)))]


def packages() -> Stamps:
    """Changes when a package is installed or removed: it may bring rules by entry point."""
    return [
        [folder, os.stat(folder).st_mtime_ns]
        for folder in sys.path
        if folder.endswith(("site-packages", "dist-packages")) and os.path.isdir(folder)
    ]


def changed_since_start(paths: Iterable[str]) -> bool:
    """Whether a source of the tool, one of these files or what is installed was changed while this
    process ran: what it has imported may be older than what lies there now."""
    files = [*_sources(OWN), *paths, *(str(folder) for folder, _ in packages())]
    return any(_changed(os.stat(path)) >= tensortrail.BEGUN for path in files)


def _sources(folder: str) -> list[str]:
    return [
        os.path.join(below, name)
        for below, _, names in os.walk(folder)
        for name in names
        if name.endswith(".py")
    ]


def _changed(status: os.stat_result) -> int:
    """Installers set the one time, and nobody the other."""
    return max(status.st_mtime_ns, status.st_ctime_ns)


def of_files(paths: Iterable[str]) -> Stamps:
    return [[path, *_stamp(os.stat(path))] for path in paths]


def _below(path: str) -> Stamps:
    if not os.path.isdir(path):
        return [[os.path.basename(path), *_stamp(os.stat(path))]]
    found: Stamps = []
    with os.scandir(path) as scan:
        for entry in scan:
            if entry.is_dir():
                found += _below(entry.path) if entry.name != "__pycache__" else []
            elif entry.name.endswith(".py"):
                found.append([entry.name, *_stamp(entry.stat())])
    return found


def _stamp(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns
