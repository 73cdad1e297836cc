"""A list of checksums beside the files: SHA256SUMS, as `sha256sum` writes and checks it, or the
`integrity.json` that Megatron Core saves with its checkpoints."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator

from tensortrail.doctor.checkpoint.formats.json_text import Malformed, read_json
from tensortrail.doctor.checkpoint.formats.ranges import Ranges, TooMuch
from tensortrail.files import write
from tensortrail.rules.checkpoint_answers import Manifest

NAME, OF_MEGATRON = "SHA256SUMS", "integrity.json"
_AT_ONCE = 8 << 20
_LINE = re.compile(r"([0-9a-fA-F]{64}) [ *]([^\0\r\n]+)")
_IS_SUM = re.compile(r"[0-9a-fA-F]{64}")
Progress = Callable[[int, int], None]


class NoManifest(Exception):
    """There is none, or it cannot be read: why."""


def write_manifest(folder: str) -> int:
    """The checksums of all files of a folder; how many there are."""
    lines = [f"{_sum(folder, name)}  {name}\n" for name in _files(folder)]
    write(os.path.join(folder, NAME), "".join(lines).encode())
    return len(lines)


def verified(folder: str, progress: Progress | None = None) -> Manifest:
    """What is another file than it was, is missing, or was not there."""
    path = os.path.join(folder, NAME)
    megatron = not os.path.exists(path) and os.path.exists(os.path.join(folder, OF_MEGATRON))
    path = os.path.join(folder, OF_MEGATRON) if megatron else path
    listed = _read_megatron(path) if megatron else _read(path)
    there = set(_megatrons(folder) if megatron else _files(folder))
    differing: dict[str, tuple[str, str]] = {}
    for name in _told([name for name in listed if name in there], progress):
        if (found := _sum(folder, name)) != listed[name]:
            differing[name] = listed[name], found
    missing = tuple(name for name in listed if name not in there)
    return Manifest(path, len(listed), differing, missing, tuple(sorted(there - listed.keys())))


def _bytes(path: str) -> bytes:
    try:
        with Ranges(path) as file:
            return file.read(0, file.size)
    except (OSError, TooMuch) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise NoManifest(f"{path}: {reason}") from error


def _read_megatron(path: str) -> dict[str, str]:
    """As `save_integrity_manifest` writes it: the algorithm, and a checksum for each file."""
    try:
        told, _ = read_json(_bytes(path))
    except (Malformed, TooMuch) as error:
        raise NoManifest(f"{path}: {error}") from error
    files = told.get("files") if isinstance(told, dict) else None
    if not isinstance(files, dict):
        raise NoManifest(f"{path} lists no files")
    if told.get("algorithm", "sha256") != "sha256":
        raise NoManifest(f"{path} has checksums by {told['algorithm']!r}, and not by sha256")
    if odd := [each for each in files.values() if not _IS_SUM.fullmatch(str(each))]:
        raise NoManifest(f"{path}: {odd[0]!r} is not a checksum")
    return {name: str(each).lower() for name, each in files.items()}


def _read(path: str) -> dict[str, str]:
    try:
        text = _bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise NoManifest(f"{path}: {error}") from error
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not (parts := _LINE.fullmatch(line)):
            raise NoManifest(f"{path}:{number} is not a checksum and a name")
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


def _megatrons(folder: str) -> Iterator[str]:
    """Those that Megatron Core lists: of the folder itself, hidden ones too, without the list."""
    with os.scandir(folder) as entries:
        yield from (each.name for each in entries if each.is_file() and each.name != OF_MEGATRON)


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
