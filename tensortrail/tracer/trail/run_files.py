"""This finds the trail files of a run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from tensortrail.tracer.trail.layout import SUFFIX
from tensortrail.tracer.trail.part import Part
from tensortrail.tracer.trail.reader import NotATrail, read_part

DEFAULT_DIRECTORY = ".tensortrail"


def read_parts(path: str | os.PathLike[str]) -> tuple[list[Part], list[str]]:
    """The parts of the run at that place, main process first, and what could not be read.

    The place is a trail file, the directory of a run, or one that holds several: the newest. A
    folder of programs stands for the runs in its `.tensortrail`."""
    parts, trouble = parts_of(map(str, trail_files(Path(path))))
    if not parts:
        raise NotATrail("; ".join(trouble) or f"{path}: no run was recorded there")
    newest = max(parts, key=lambda part: _number(part, "start"))
    run = newest.header.get("run")
    kept = [part for part in parts if part.header.get("run") == run]
    others = {str(part.header.get("run")) for part in parts} - {str(run)}
    if others:
        trouble.append(f"{path}: {len(others)} earlier runs lie here too; this is the newest")
    kept.sort(key=lambda part: (_number(part, "rank"), _number(part, "start")))
    return kept, trouble


def parts_of(files: Iterable[str]) -> tuple[list[Part], list[str]]:
    """Those that can be read, and why the others could not."""
    parts: list[Part] = []
    trouble: list[str] = []
    for file in files:
        try:
            part = read_part(file)
        except NotATrail as error:
            trouble.append(str(error))
            continue
        except OSError as error:
            trouble.append(f"{file}: cannot be read: {error.strerror or error}")
            continue
        parts.append(part)
        if part.damage:
            trouble.append(part.damage)
    _end_what_was_left(parts)
    return parts, trouble


def _end_what_was_left(parts: Iterable[Part]) -> None:
    """A child that ends with its parent has no time to close its file, and nothing went wrong."""
    parts = list(parts)
    left = {(each.header.get("host"), pid) for each in parts for pid in each.left}
    for each in parts:
        each.closed |= (each.header.get("host"), each.header.get("pid")) in left


def trail_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        nothing_yet = str(path) == DEFAULT_DIRECTORY
        none = "no run was recorded in this folder"
        raise NotATrail(none if nothing_yet else f"{path}: no such file or directory")
    if found := files_of_run(path):
        return found
    folder = folder_of_runs(path)
    runs = runs_in(folder)
    if not runs:
        raise NotATrail(f"{folder}: no run was recorded there")
    return files_of_run(max(runs, key=lambda each: each.stat().st_mtime))


def folder_of_runs(folder: Path) -> Path:
    """The folder itself; without runs of its own, the `.tensortrail` in it."""
    below = folder / DEFAULT_DIRECTORY
    return below if below.is_dir() and not runs_in(folder) else folder


def runs_in(folder: Path) -> list[Path]:
    return [each for each in folder.iterdir() if each.is_dir() and files_of_run(each)]


def files_of_run(folder: Path) -> list[Path]:
    """Those in the folder, and in the folders of xdist's processes."""
    return sorted([*folder.glob(f"*{SUFFIX}"), *folder.glob(f"gw[0-9]*/*{SUFFIX}")])


def _number(part: Part, key: str) -> float:
    value = part.header.get(key)
    return float(value) if isinstance(value, (int, float)) else 0.0
