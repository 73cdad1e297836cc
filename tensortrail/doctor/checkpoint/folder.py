"""What lies in a folder, or is one file: read into what rules see."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from tensortrail.doctor.checkpoint.formats.distributed_metadata import (
    METADATA,
    OF_A_RANK,
    read_distributed,
)
from tensortrail.doctor.checkpoint.formats.index_file import read_index
from tensortrail.doctor.checkpoint.formats.json_text import Malformed, read_json
from tensortrail.doctor.checkpoint.formats.ranges import Ranges, TooMuch
from tensortrail.doctor.checkpoint.formats.rank_file import pieces_by_file, read_rank_file
from tensortrail.doctor.checkpoint.formats.readers import is_weights, reader_of
from tensortrail.files import within
from tensortrail.rules.checkpoint import ADAPTER_CONFIG, MODEL_CONFIG, PIPELINE_CONFIG, Checkpoint
from tensortrail.rules.checkpoint_files import Distributed, RankFile, WeightFile

MOST_FILES = 20_000
_INDEX = re.compile(r".+\.index(\.[\w-]+)?\.json")
CONFIGS = (MODEL_CONFIG, PIPELINE_CONFIG, ADAPTER_CONFIG)
Progress = Callable[[int, int], None]
Found = TypeVar("Found")


class Read(NamedTuple):
    checkpoint: Checkpoint
    problems: tuple[str, ...]
    """Files that could not be read, one line each."""
    below: tuple[str, ...] = ()
    """Folders in it that hold weights of their own."""


class NothingHere(OSError):
    """No such path, or nothing that is known to be a checkpoint."""


def read_checkpoint(path: str, progress: Progress | None = None) -> Read:
    if not os.path.exists(path):
        raise NothingHere(f"no such file or directory: {path}")
    tell = progress or (lambda done, total: None)
    folder, name = os.path.dirname(path) or ".", os.path.basename(path)
    if os.path.isdir(path):
        return _folder(path, tell)
    if _INDEX.fullmatch(name):
        return _folder(folder, tell, name)
    if name == METADATA or name.endswith(OF_A_RANK):
        return _folder(folder, tell)
    if not os.path.isfile(path):
        raise NothingHere(f"{path} is not a regular file")
    problems: list[str] = []
    files = _read_files([name], os.path.dirname(path), problems, tell)
    names = frozenset((name,))
    return Read(Checkpoint(path, tuple(files), names=names, single=True), tuple(problems))


def _folder(path: str, progress: Progress, only: str = "") -> Read:
    names = sorted(_listed(path))
    if len(names) > MOST_FILES:
        raise NothingHere(f"{path} holds more than {MOST_FILES:,} files: name one of its folders")
    problems: list[str] = []
    wanted = [name for name in names if _INDEX.fullmatch(name) and (not only or name == only)]
    indexes = [index for name in wanted if (index := _read(read_index, path, name, problems))]
    named = {file for index in indexes for file in index.weight_map.values()}
    outside = frozenset(file for file in named if _leaves(file))
    weights = [name for name in names if is_weights(name) and (not only or name in named)]
    weights += sorted(_deeper(named - outside, path))
    found = Checkpoint(
        path,
        tuple(_read_files(weights, path, problems, progress)),
        tuple(indexes),
        frozenset(names),
        outside,
        sizes=_sizes(path, names),
        configs=dict(_configs(path, names)),
    )
    found = replace(found, components=_components(path, found))
    if METADATA in names and not only:
        found = _with_ranks(found, problems, progress)
    return Read(found, tuple(problems), tuple(_with_weights(path, names)))


def _with_ranks(found: Checkpoint, problems: list[str], progress: Progress) -> Checkpoint:
    """With what the metadata of a distributed checkpoint tells, and the files of its ranks."""
    told = _read(read_distributed, found.path, METADATA, problems)
    if told is None:
        return found
    ranks = _rank_files(told, found.sizes, found.path, problems, progress)
    return replace(found, distributed=told, ranks=tuple(ranks))


def _rank_files(
    metadata: Distributed,
    sizes: Mapping[str, int],
    folder: str,
    problems: list[str],
    progress: Progress,
) -> Iterator[RankFile]:
    named = {name: each for name, each in pieces_by_file(metadata).items() if name in sizes}
    for done, (name, pieces) in enumerate(named.items()):
        progress(done, len(named))
        if found := _read(partial(read_rank_file, pieces=pieces), folder, name, problems):
            yield found


def _components(path: str, checkpoint: Checkpoint) -> dict[str, frozenset[str]]:
    """The folders that a pipeline names; one that is a link elsewhere is as good as none."""
    found: dict[str, frozenset[str]] = {}
    for name in checkpoint.configs.get(PIPELINE_CONFIG, ()):
        below = os.path.join(path, name)
        if name in checkpoint.names and os.path.isdir(below) and not os.path.islink(below):
            found[name] = frozenset(_listed(below))
    return found


def _sizes(path: str, names: list[str]) -> dict[str, int]:
    """Of the files of ranks that are there."""
    found: dict[str, int] = {}
    for name in names:
        if name.endswith(OF_A_RANK):
            status = os.stat(os.path.join(path, name))
            if stat.S_ISREG(status.st_mode):
                found[name] = status.st_size
    return found


def _configs(path: str, names: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in CONFIGS:
        if (told := _config(path, name, names)) is not None:
            yield name, told


def _config(path: str, name: str, names: list[str]) -> dict[str, Any] | None:
    """A configuration that is a JSON object; what is wrong with another one is not asked here."""
    if name not in names:
        return None
    try:
        with Ranges(os.path.join(path, name)) as file:
            told, _ = read_json(file.read(0, file.size))
    except (OSError, TooMuch, Malformed):
        return None
    return told if isinstance(told, dict) else None


def _read_files(
    names: list[str], folder: str, problems: list[str], progress: Progress
) -> list[WeightFile]:
    files: list[WeightFile] = []
    for done, name in enumerate(names):
        progress(done, len(names))
        path = os.path.join(folder, name)
        try:
            with Ranges(path) as file:
                files.append(reader_of(name)(file, path, name))
        except (OSError, TooMuch) as error:
            problems.append(_told(path, error))
    progress(len(names), len(names))
    return files


def _read(
    reader: Callable[[Ranges, str, str], Found], folder: str, name: str, problems: list[str]
) -> Found | None:
    path = os.path.join(folder, name)
    try:
        with Ranges(path) as file:
            return reader(file, path, name)
    except (OSError, TooMuch) as error:
        problems.append(_told(path, error))
        return None


def _told(path: str, error: Exception) -> str:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"{path} was not checked: {reason[:1].lower()}{reason[1:]}"


def _listed(folder: str) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in islice(entries, MOST_FILES + 1)]


def _leaves(file: str) -> bool:
    """The name leads out of the folder; a link in it may lead anywhere, as in the hub's cache."""
    parts = file.replace("\\", "/").split("/")
    return os.path.isabs(file) or ".." in parts or "\0" in file or bool(os.path.splitdrive(file)[0])


def _deeper(named: set[str], folder: str) -> Iterable[str]:
    """Files in folders below that an index names; not behind a folder that is a link elsewhere."""
    root = os.path.realpath(folder)
    for file in named:
        if os.path.dirname(file):
            lies_in = os.path.realpath(os.path.join(folder, os.path.dirname(file)))
            if within(lies_in, root) and os.path.isfile(os.path.join(folder, file)):
                yield file


def _with_weights(folder: str, names: list[str]) -> Iterable[str]:
    for name in names:
        below = os.path.join(folder, name)
        if os.path.isdir(below) and not os.path.islink(below):
            try:
                found = any(is_weights(each) for each in os.listdir(below))
            except OSError:
                continue
            if found:
                yield name
