"""Fixes of device, offload and checkpoint bugs, mined from the histories of other projects.

Nobody has read them: subject and diff of a commit look like such a fix, no more is known.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from history_fixes import NO_SOURCE, Repository

RISK = re.compile(
    r"device|cuda|\bcpu\b|\bgpu|\bmps\b|\b[xn]pu\b|\bmeta\b|offload|\bties?\b|\btied|\btying"
    r"|non_?blocking|map_location|pinned|pin_memory|\bhooks?\b|buffers?\b|streams?\b|synchroni|storage",
    re.I,
)
A_FIX = re.compile(
    r"fix|bug|wrong|incorrect|mismatch|error|fail|crash|avoid|ensure|should|respect|missing|proper"
    r"|regress|leak|restore|\blost\b|make sure|don't|do not|instead of|hard-?code|same device"
    r"|correct|move .* to|keep",
    re.I,
)
NO_FIX = re.compile(
    r"^revert|^merge|bump|typo|docstring|\blint|refactor|\[?docs?\b|^add support", re.I
)
OF_PLACES = re.compile(
    r"\bdevice\s*=|\.device\b|torch\.device|\.to\(|\.cuda\(|\.cpu\(|register_buffer|map_location"
    r"|non_blocking|to_empty|[\"']meta[\"']|is_meta|pin_memory|synchronize\(|_stream\(|data_ptr"
    r"|untyped_storage|tie_weights|offload|_hooks?\b|[\"']cuda"
)
HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? ", re.M)
MOST_FILES, MOST_LINES = 3, 40
HALVES = ("tuning", "fresh")


@dataclass(frozen=True)
class Change:
    """One file of a fix, and the lines of it that the fix replaces, or adds to."""

    path: str
    lines: str


@dataclass(frozen=True)
class MinedFix:
    project: str
    commit: str
    parent: str
    subject: str
    changes: tuple[Change, ...]


def half_of(project: str) -> str:
    """Rules are tuned on one half of the projects; the other is only measured."""
    return HALVES[hashlib.sha256(project.encode()).digest()[0] % 2]


def mined(mirrors: Path, without: Sequence[str], known: Sequence[str]) -> Iterator[MinedFix]:
    """Of every project but those in `without`, all fixes but those known by their commit."""
    for folder in sorted(mirrors.glob("*/repo")):
        project = folder.parent.name.replace("+", "/", 1)
        if project not in without:
            yield from _of_project(project, Repository(folder), set(known))


def sample(fixes: Sequence[MinedFix], of_each: int) -> list[MinedFix]:
    """At most so many of each project, chosen by the hash of the commit."""
    by_project: dict[str, list[MinedFix]] = {}
    for fix in sorted(fixes, key=lambda each: hashlib.sha256(each.commit.encode()).digest()):
        by_project.setdefault(fix.project, []).append(fix)
    return [fix for group in by_project.values() for fix in group[:of_each]]


def _of_project(project: str, repository: Repository, known: set[str]) -> Iterator[MinedFix]:
    log = ("log", "--no-merges", "--format=%x01%H %P%x02%s", "--numstat", "-i", "-E")
    told = repository.git(*log, f"--grep={RISK.pattern}", "--", "*.py")
    for chunk in told.decode(errors="replace").split("\x01")[1:]:
        head, *numbers = chunk.splitlines()
        commits, _, subject = head.partition("\x02")
        commit, _, parent = commits.partition(" ")
        paths = _sources(numbers)
        if paths and parent and commit not in known and _is_fix(subject):
            changes = tuple(_changes(repository, commit, paths))
            if changes:
                yield MinedFix(project, commit, parent, subject, changes)


def _is_fix(subject: str) -> bool:
    return bool(RISK.search(subject) and A_FIX.search(subject) and not NO_FIX.search(subject))


def _sources(numbers: Sequence[str]) -> list[str]:
    """The files of library code, if they are few and little of them changes."""
    files = [line.split("\t") for line in numbers if line.count("\t") == 2]
    chosen = [each for each in files if each[2].endswith(".py") and not NO_SOURCE.search(each[2])]
    lines = sum(int(count) for each in chosen for count in each[:2] if count.isdigit())
    moved = any("=>" in path for *_, path in chosen)
    few = 0 < len(chosen) <= MOST_FILES and lines <= MOST_LINES
    return [path for *_, path in chosen] if few and not moved else []


def _changes(repository: Repository, commit: str, paths: Sequence[str]) -> Iterator[Change]:
    for path in paths:
        command = ("show", "--format=", "-U0", commit, "--", path)
        diff = repository.git(*command).decode(errors="replace")
        if "\nnew file mode" not in diff and OF_PLACES.search(_changed(diff)):
            yield Change(path, "; ".join(_ranges(diff)))


def _changed(diff: str) -> str:
    return "\n".join(re.findall(r"^[+-](?![+-]{2} ).*", diff, re.M))


def _ranges(diff: str) -> Iterator[str]:
    for hunk in HUNK.finditer(diff):
        first, count = int(hunk[1]), int(hunk[2] or 1)
        yield f"{first}-{first + max(0, count - 1)}"
