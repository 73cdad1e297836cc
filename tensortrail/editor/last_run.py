"""The newest recorded run near a file, as far as it is of the text that is open."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tensortrail.findings import Edit, Finding, Site

if TYPE_CHECKING:
    from tensortrail.tracer.reading.lens import FileFacts

_LARGEST = 200_000_000
"""Bytes of a run that is read for the editor."""
OF_RUN = "last run"
"""In the evidence of a run's findings: when it began."""
Stamp = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Run:
    stamp: Stamp
    began: str = ""
    files: Mapping[str, FileFacts] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Recorded:
    """What a run knows of one file."""

    path: str
    facts: FileFacts
    run: Run

    def findings(self) -> list[Finding]:
        """Those in the file, if the run is of its text."""
        if self.facts.changed:
            return []
        real = os.path.realpath(self.path)
        here = [each for each in self.run.findings if os.path.realpath(each.site.file) == real]
        return [_in_buffer(each, self.path, self.run.began) for each in here]


class LastRuns:
    """By the folder `.tensortrail` they lie in; read again when a newer run is there."""

    def __init__(self) -> None:
        self._runs: dict[Path, Run] = {}
        self._reading = threading.Lock()

    def of(self, path: str, program: bytes) -> Recorded | None:
        """What the run knows of the file; nothing of its lines where it is of another text."""
        run = self._near(path)
        facts = run.files.get(os.path.realpath(path)) if run is not None else None
        if run is None or facts is None:
            return None
        if sha256(program).hexdigest() == facts.digest:
            return Recorded(path, replace(facts, changed=""), run)
        changed = facts.changed or "it changed since the run"
        return Recorded(path, replace(facts, changed=changed, lines={}), run)

    def _near(self, path: str) -> Run | None:
        if not os.path.isabs(path):
            return None
        if find_spec("msgpack") is None:
            return None  # without the extra `trace` no run can be read
        folder = _folder(Path(path).parent)
        if folder is None:
            return None
        with self._reading:
            known = self._runs.get(folder)
            stamp = _stamp(folder)
            if known is None or known.stamp != stamp:
                if known is not None and _is_written(stamp):
                    return known
                known = self._runs[folder] = _read(folder, stamp)
            return known


def _folder(start: Path) -> Path | None:
    from tensortrail.tracer.trail.run_files import DEFAULT_DIRECTORY

    below = (each / DEFAULT_DIRECTORY for each in (start, *start.parents))
    return next((each for each in below if each.is_dir()), None)


def _stamp(folder: Path) -> Stamp:
    from tensortrail.tracer.trail.reader import NotATrail
    from tensortrail.tracer.trail.run_files import trail_files

    try:
        files = [(str(each), each.stat()) for each in trail_files(folder)]
    except (NotATrail, OSError):
        return ()
    return tuple((name, status.st_size, status.st_mtime_ns) for name, status in files)


def _is_written(stamp: Stamp) -> bool:
    """A run that goes on grows all the time: the one before it is shown until it ends."""
    newest = max((each[2] for each in stamp), default=0)
    return time.time_ns() - newest < 2_000_000_000


def _read(folder: Path, stamp: Stamp) -> Run:
    if not stamp or sum(each[1] for each in stamp) > _LARGEST:
        return Run(stamp)
    from tensortrail.tracer.reading.findings_of_run import findings
    from tensortrail.tracer.reading.lens import facts_of, file_facts
    from tensortrail.tracer.reading.timeline import open_run
    from tensortrail.tracer.trail.reader import NotATrail

    try:
        timeline = open_run(folder)
    except (NotATrail, OSError):
        return Run(stamp)
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(timeline.started))
    files, found = facts_of(timeline), findings(timeline).findings
    for path in {os.path.realpath(each.site.file) for each in found} - files.keys():
        files[path] = file_facts(path, timeline)
    return Run(stamp, began, files, found)


def _in_buffer(finding: Finding, path: str, began: str) -> Finding:
    real = os.path.realpath(path)

    def site(each: Site) -> Site:
        return replace(each, file=path) if os.path.realpath(each.file) == real else each

    def edit(each: Edit) -> Edit:
        return replace(each, site=site(each.site))

    return replace(
        finding,
        site=site(finding.site),
        trail=tuple(replace(step, site=site(step.site)) for step in finding.trail),
        fixes=tuple(replace(f, edits=tuple(map(edit, f.edits))) for f in finding.fixes),
        settings=tuple(replace(s, at=site(s.at) if s.at else None) for s in finding.settings),
        evidence={**finding.evidence, OF_RUN: began},
    )


def beside(
    static: Sequence[Finding], of_run: Sequence[Finding], wanted: Callable[[Finding], bool]
) -> list[Finding]:
    """What only the run shows joins what the code shows."""
    known = {(each.code, each.site.line) for each in static}
    new = [each for each in of_run if (each.code, each.site.line) not in known and wanted(each)]
    return [*static, *new]
