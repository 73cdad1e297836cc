"""The files of a run are parted by rank from their headers alone: no event is read for it."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensortrail.tracer.trail.reader import NotATrail, read_notes
from tensortrail.tracer.trail.run_files import trail_files

MANY = 8
"""From so many ranks on, each is read by itself, and what they share is said once."""


@dataclass(frozen=True, slots=True)
class RankFiles:
    """What one rank and its children wrote, and those they were forked from."""

    rank: int | None
    paths: tuple[str, ...]
    parents: tuple[str, ...] = ()
    """Other processes whose tensors they were born with."""

    @property
    def nbytes(self) -> int:
        return sum(os.path.getsize(each) for each in self.paths)


@dataclass(frozen=True, slots=True)
class RunFiles:
    folder: str
    ranks: tuple[RankFiles, ...]
    """In order of the ranks; what has no rank comes first."""
    trouble: tuple[str, ...] = ()
    started: float = 0.0
    """When the first of its processes began, on the clock of the machine."""

    @property
    def several(self) -> bool:
        return sum(each.rank is not None for each in self.ranks) > 1

    @property
    def has_many(self) -> bool:
        return sum(each.rank is not None for each in self.ranks) >= MANY


def files_by_rank(path: str | os.PathLike[str]) -> RunFiles:
    """The newest run at that place, as `run_files.read_parts` chooses it."""
    headers: dict[str, Mapping[str, Any]] = {}
    trouble: list[str] = []
    for file in trail_files(Path(path)):
        try:
            headers[str(file)] = read_notes(str(file))
        except NotATrail as error:
            trouble.append(str(error))
        except OSError as error:
            trouble.append(f"{file}: cannot be read: {error.strerror or error}")
    if not headers:
        raise NotATrail("; ".join(trouble) or f"{path}: no run was recorded there")
    run = max(headers.values(), key=_start).get("run")
    kept = {file: header for file, header in headers.items() if header.get("run") == run}
    if others := {str(each.get("run")) for each in headers.values()} - {str(run)}:
        trouble.append(f"{path}: {len(others)} earlier runs lie here too; this is the newest")
    first = min(kept, key=lambda file: _start(kept[file]))
    return RunFiles(
        os.path.dirname(first), tuple(_parted(kept)), tuple(trouble), _start(kept[first])
    )


def _parted(headers: Mapping[str, Mapping[str, Any]]) -> Sequence[RankFiles]:
    by_rank: dict[int | None, list[str]] = defaultdict(list)
    for file in sorted(headers, key=lambda file: _start(headers[file])):
        rank = headers[file].get("rank")
        by_rank[rank if isinstance(rank, int) else None].append(file)
    by_pid = {(each.get("host"), each.get("pid")): file for file, each in headers.items()}
    found = [
        RankFiles(rank, tuple(paths), tuple(_parents(paths, headers, by_pid)))
        for rank, paths in by_rank.items()
    ]
    return sorted(found, key=lambda each: -1 if each.rank is None else each.rank)


def _parents(
    paths: Sequence[str],
    headers: Mapping[str, Mapping[str, Any]],
    by_pid: Mapping[tuple[Any, Any], str],
) -> Sequence[str]:
    """Those of other ranks, for processes that were forked and so began with their storages."""
    born = (headers[each] for each in paths if (headers[each].get("first_storage") or 0) > 1)
    parents = (by_pid.get((each.get("host"), each.get("parent"))) for each in born)
    return list(dict.fromkeys(each for each in parents if each and each not in paths))


def _start(header: Mapping[str, Any]) -> float:
    return float(header.get("start") or 0.0)
