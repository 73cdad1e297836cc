"""A list of checksums beside the files, as `sha256sum` writes and checks it: SHA256SUMS."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator

from tensortrail.doctor.checkpoint.formats.ranges import Ranges, TooMuch
from tensortrail.files import write
from tensortrail.rules.checkpoint import Manifest

NAME = "SHA256SUMS"
_AT_ONCE = 8 << 20
_LINE = re.compile(r"([0-9a-fA-F]{64}) [ *]([^\0\r\n]+)")
Progress = Callable[[int, int], None]


class NoManifest(Exception):
    """There is none, or it cannot be read: why."""


def write_manifest(folder: str, progress: Progress | None = None) -> int:
    """The checksums of all files of a folder; how many there are."""
    names = list(_files(folder))
    lines = [f"{_sum(folder, name)}  {name}\n" for name in _told(names, progress)]
    write(os.path.join(folder, NAME), "".join(lines).encode())
    return len(lines)


def verified(folder: str, progress: Progress | None = None) -> Manifest:
    """What is another file than it was, is missing, or was not there."""
    path = os.path.join(folder, NAME)
    listed = _read(path)
    there = set(_files(folder))
    differing: dict[str, tuple[str, str]] = {}
    for name in _told([name for name in listed if name in there], progress):
        if (found := _sum(folder, name)) != listed[name]:
            differing[name] = listed[name], found
    missing = tuple(name for name in listed if name not in there)
    return Manifest(path, len(listed), differing, missing, tuple(sorted(there - listed.keys())))


def _read(path: str) -> dict[str, str]:
    try:
        with Ranges(path) as file:
            text = file.read(0, file.size).decode("utf-8")
    except (OSError, TooMuch, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise NoManifest(f"{path}: {reason}") from error
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not (parts := _LINE.fullmatch(line)):
            raise NoManifest(f"{path}:{number} is no checksum and name")
        found[parts[2].removeprefix("./")] = parts[1].lower()
    return found


def _files(folder: str) -> Iterator[str]:
    """By name from the folder; not behind a folder that is a link."""
    for here, below, names in os.walk(folder):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in sorted(names):
            path = os.path.join(here, name)
            plain = "\n" not in name and os.path.isfile(path)
            if plain and name != NAME and (not name.startswith(".") or name == ".metadata"):
                yield os.path.relpath(path, folder).replace(os.sep, "/")


def _sum(folder: str, name: str) -> str:
    digest = hashlib.sha256()
    with Ranges(os.path.join(folder, name)) as file:
        for begin in range(0, file.size, _AT_ONCE):
            digest.update(file.read(begin, _AT_ONCE))
    return digest.hexdigest()


def _told(names: list[str], progress: Progress | None) -> Iterator[str]:
    for done, name in enumerate(names):
        if progress is not None:
            progress(done, len(names))
        yield name
