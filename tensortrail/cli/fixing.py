"""What `--fix`, `--diff` and `--add-ignores` do to the files of a check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from tensortrail.analyzer.atomic import write
from tensortrail.analyzer.engine import check
from tensortrail.analyzer.fixer import fix_file, unified_diff
from tensortrail.analyzer.request import CheckRequest
from tensortrail.findings import Finding


@dataclass
class Outcome:
    left: tuple[Finding, ...] = ()
    count: int = 0
    diff: str = ""
    messages: list[str] = field(default_factory=list)
    stdin: bytes = b""


def fix(request: CheckRequest, findings: Sequence[Finding], unsafe: bool, write: bool) -> Outcome:
    """Fix file by file; one that cannot be written is reported, the others are still done."""
    outcome = Outcome(stdin=request.stdin[1] if request.stdin is not None else b"")
    left: list[Finding] = []
    for path, group in groupby(findings, key=lambda each: each.site.file):
        found = list(group)
        left += _fix_one(request, path, found, unsafe, write, outcome)
    outcome.left = tuple(left)
    return outcome


def _fix_one(
    request: CheckRequest,
    path: str,
    found: list[Finding],
    unsafe: bool,
    write_file: bool,
    outcome: Outcome,
) -> Sequence[Finding]:
    if not any(each.fixes for each in found):
        return found

    def find_again(name: str, data: bytes) -> Sequence[Finding]:
        again = replace(request, stdin=(name, data), siblings=False, cache_dir=None)
        return check(again).findings

    try:
        if request.stdin is not None:
            data = request.stdin[1]
        else:
            with open(path, "rb") as handle:
                data = handle.read()
        done = fix_file(path, data, found, unsafe, find_again)
        if done.after != done.before:
            if request.stdin is not None:
                outcome.stdin = done.after
            elif write_file:
                write(path, done.after)
    except OSError as error:
        outcome.messages.append(f"{path}: not fixed: {error.strerror or error}")
        return found
    outcome.count += done.applied
    outcome.messages += done.dropped
    outcome.diff += unified_diff(path, done.before, done.after) if done.applied else ""
    return done.left


def add_ignores(findings: Sequence[Finding]) -> str:
    """Put a suppression beside every finding; says what was done."""
    from tensortrail.analyzer.edits import apply
    from tensortrail.analyzer.own import OWN
    from tensortrail.analyzer.source import Source
    from tensortrail.analyzer.suppress import added_ignores

    comments = files = 0
    for path, group in groupby(findings, key=lambda each: each.site.file):
        with open(path, "rb") as handle:
            data = handle.read()
        ours = [each for each in group if each.code not in OWN]
        edits = added_ignores(Source(path, data), ours)
        if edits:
            write(path, apply(data, edits))
            comments += len(edits)
            files += 1
    return f"Added {comments} suppressions in {files} files."
