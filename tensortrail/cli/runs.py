"""`tensortrail runs`: list, compare and remove recorded runs."""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tensortrail.cli.console import fail, say, write_text
from tensortrail.cli.exit_codes import CLEAN, FAILED, FOUND

if TYPE_CHECKING:
    from tensortrail.tracer.trail.kept_runs import KeptRun


def run(options: Namespace) -> int:
    from tensortrail.tracer.trail.run_files import folder_of_runs

    folder = Path(options.folder)
    folder = folder_of_runs(folder) if folder.is_dir() else folder
    if options.compare:
        return _compare(folder, options)
    if options.remove:
        return _remove(folder, options.remove)
    return _list(folder, options.format)


def _place(folder: Path, run: str) -> Path:
    """A run is named by its folder, or by what it is called in the folder of runs."""
    inside = folder / run
    return inside if inside.exists() else Path(run)


def _list(folder: Path, format: str) -> int:
    from tensortrail.tracer.trail.kept_runs import kept_runs
    from tensortrail.tracer.trail.run_files import DEFAULT_DIRECTORY

    runs = kept_runs(folder)
    if not (runs or folder.is_dir() or str(folder) == DEFAULT_DIRECTORY):
        fail(f"{folder}: no such folder")
        return FAILED
    if format == "json":
        write_text(json.dumps([_as_dict(each) for each in runs], indent=2), sys.stdout)
    elif runs:
        write_text("\n".join(_lines(runs)), sys.stdout)
    else:
        say(f"no runs in {folder}: tensortrail trace script.py records one")
    return CLEAN


def _lines(runs: Sequence[KeptRun]) -> list[str]:
    from tensortrail.inert import inert
    from tensortrail.plurals import counted
    from tensortrail.tracer.reading.sentences import size

    rows = [
        (each.folder.name, _when(each), each.outcome, counted(each.processes, "process"),
         size(each.nbytes), _program(each))
        for each in runs
    ]  # fmt: skip
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return [
        inert("  ".join((*(f"{row[n]:<{widths[n]}}" for n in range(5)), row[5]))) for row in rows
    ]


def _when(each: KeptRun) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(each.started)) if each.started else "?"


def _program(each: KeptRun) -> str:
    return f"{each.program}  (rehearsed on {each.devices})" if each.devices else each.program


def _as_dict(each: KeptRun) -> dict[str, object]:
    return {**vars(each), "folder": str(each.folder)}


def _remove(folder: Path, runs: Sequence[str]) -> int:
    from tensortrail.tracer.trail.kept_runs import remove
    from tensortrail.tracer.trail.run_files import files_of_run

    code = CLEAN
    for name in runs:
        place = _place(folder, name)
        if not place.is_dir() or not files_of_run(place):
            fail(f"{place}: no run")
            code = FAILED
        elif not remove(place):
            say(f"{place}: the trail is removed; the folder has other files and stays")
    return code


def _compare(folder: Path, options: Namespace) -> int:
    from tensortrail.cli.recorded_run import opened_run
    from tensortrail.tracer.exports.comparison import as_json, as_text
    from tensortrail.tracer.reading.run_comparison import compared

    before, after = (opened_run(str(_place(folder, each))) for each in options.compare)
    if before is None or after is None:
        return FAILED
    found = compared(before, after)
    write_text(as_json(found) if options.format == "json" else as_text(found), sys.stdout)
    return FOUND if found.new else CLEAN
