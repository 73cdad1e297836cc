"""Two runs are compared: what lies elsewhere, what moves more, which findings are new."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tensortrail.findings import Finding
from tensortrail.tracer.reading.findings_of_run import findings
from tensortrail.tracer.reading.process import LINEAGE_CODES
from tensortrail.tracer.reading.storage_names import names
from tensortrail.tracer.reading.summary import Summary
from tensortrail.tracer.reading.timeline import RunTimeline

Way = tuple[str, int, str, str]
"""A line, and the devices it moves from and to."""
_LINE = re.compile(r":\d+")


@dataclass(frozen=True)
class Moved:
    """The bytes that one line moves in each run."""

    file: str
    line: int
    source: str
    target: str
    before: int
    after: int


@dataclass(frozen=True)
class Comparison:
    elsewhere: tuple[tuple[str, str, str], ...]
    """Each tensor that both runs name, its device in the first and in the second."""
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    peaks: tuple[tuple[str, int, int], ...]
    """Each device with other peaks."""
    moves: tuple[Moved, ...]
    """Lines that move more or less, the largest difference first."""
    new: tuple[Finding, ...]
    gone: tuple[Finding, ...]

    @property
    def is_empty(self) -> bool:
        return not any(vars(self).values())


def compared(before: RunTimeline, after: RunTimeline) -> Comparison:
    was, now = _devices(before), _devices(after)
    old, new = _by_meaning(before), _by_meaning(after)
    both = sorted(was.keys() & now.keys())
    return Comparison(
        elsewhere=tuple((each, was[each], now[each]) for each in both if was[each] != now[each]),
        only_before=tuple(sorted(was.keys() - now.keys())),
        only_after=tuple(sorted(now.keys() - was.keys())),
        peaks=tuple(_peaks(Summary(before), Summary(after))),
        moves=tuple(_moves(before, after)),
        new=tuple(new[key] for key in new if key not in old),
        gone=tuple(old[key] for key in old if key not in new),
    )


def _devices(timeline: RunTimeline) -> dict[str, str]:
    """Where the tensors of each name lay last: of two models of a class, both."""
    found: dict[str, set[str]] = defaultdict(set)
    for process in timeline.processes:
        left = {row[5] for row in process.part.rows if row[0] in LINEAGE_CODES and row[4] != row[5]}
        for number, name in names(process).items():
            if number not in left and (storage := process.storage(number)) is not None:
                found[name].add(storage.device)
    return {name: ", ".join(sorted(devices)) for name, devices in found.items()}


def _peaks(before: Summary, after: Summary) -> Iterator[tuple[str, int, int]]:
    was = {device: level.peak for device, level in before.levels.items()}
    now = {device: level.peak for device, level in after.levels.items()}
    for device in sorted(was.keys() | now.keys()):
        if was.get(device, 0) != now.get(device, 0):
            yield device, was.get(device, 0), now.get(device, 0)


def _moves(before: RunTimeline, after: RunTimeline) -> list[Moved]:
    was, now = _ways(before), _ways(after)
    ways = was.keys() | now.keys()
    found = [Moved(*way, was.get(way, 0), now.get(way, 0)) for way in ways]
    different = [each for each in found if each.before != each.after]
    return sorted(different, key=lambda each: (-abs(each.after - each.before), each.file))


def _ways(timeline: RunTimeline) -> Mapping[Way, int]:
    total: Counter[Way] = Counter()
    for each in Summary(timeline).moves_by_line:
        if (site := each.site or each.by) is not None:
            total[site.file, site.line, each.source, each.target] += each.nbytes
    return total


def _by_meaning(timeline: RunTimeline) -> dict[tuple[str, str, str], Finding]:
    """Lines may have shifted between the runs."""
    return {
        (each.code, os.path.basename(each.site.file), _LINE.sub(":", each.message)): each
        for each in findings(timeline).findings
    }
