"""The runs that are kept in a folder: what each is, and how one is removed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tensortrail.tracer.trail.last_state import ENDING
from tensortrail.tracer.trail.layout import SUFFIX
from tensortrail.tracer.trail.outcome import outcome
from tensortrail.tracer.trail.part import Part
from tensortrail.tracer.trail.reader import NotATrail, read_ends
from tensortrail.tracer.trail.run_files import files_of_run, runs_in

PARQUET = "run.parquet"
"""A file; of several ranks a folder."""
REPORTS = ("report.html", "perfetto.json", PARQUET)
"""What `tensortrail report` writes beside the trail."""
IGNORED = "*\n"


@dataclass(frozen=True)
class KeptRun:
    folder: Path
    started: float
    """Seconds since 1970; 0 if the trail does not say."""
    program: str
    processes: int
    nbytes: int
    devices: str
    """Those that were simulated."""
    outcome: str
    """How the program ended: `ended`, `failed: RuntimeError`, `killed`, `running`."""


def kept_runs(folder: Path) -> list[KeptRun]:
    """The newest first."""
    found = [_run(each) for each in runs_in(folder)] if folder.is_dir() else []
    return sorted(found, key=lambda each: -each.started)


def _run(folder: Path) -> KeptRun:
    files = files_of_run(folder)
    parts: list[Part] = []
    for file in files:
        with suppress(NotATrail, OSError):
            parts.append(read_ends(str(file)))
    headers = [each.header for each in parts]
    first = min(headers, key=lambda each: float(each.get("start") or 0), default={})
    return KeptRun(
        folder=folder,
        started=float(first.get("start") or 0),
        program=" ".join(first.get("argv") or ("?",)),
        processes=len(files),
        nbytes=sum(each.stat().st_size for each in _ours(folder)),
        devices=str(first.get("rehearse") or ""),
        outcome=outcome(parts),
    )


def remove(folder: Path) -> bool:
    """Remove what is ours in the folder of a run; whether the folder is gone."""
    inside = {each.parent for each in files_of_run(folder)} | {folder}
    for each in list(_ours(folder)):
        each.unlink()
    inside |= {each for each in (folder / PARQUET).rglob("*") if each.is_dir()}
    inside |= {folder / PARQUET}
    for each in sorted(inside, reverse=True):
        with suppress(OSError):
            each.rmdir()
    return not folder.exists()


SNAPSHOT = ".weights.json"
"""What `run.snapshot` writes beside the trail."""


def _ours(folder: Path) -> Iterator[Path]:
    for within in {each.parent for each in files_of_run(folder)} | {folder}:
        for each in within.iterdir():
            known = each.suffix in (SUFFIX, ENDING) or each.name in REPORTS
            if each.is_file() and (known or each.name.endswith(SNAPSHOT)):
                yield each
    yield from (folder / PARQUET).glob("*/rank=*/part.parquet")


def keep_out_of_git(folder: Path) -> None:
    """A folder of runs that we made is no part of a project."""
    ignore = folder / ".gitignore"
    if not ignore.exists():
        with suppress(OSError):
            ignore.write_text(IGNORED)
