"""`tensortrail fix`: apply what a recorded run suggests."""

from __future__ import annotations

import ast
import os
import sys
from argparse import Namespace
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tensortrail.cli.console import say, write_text
from tensortrail.cli.exit_codes import CLEAN, FAILED, FOUND
from tensortrail.cli.unfixed_findings import named, without_patch
from tensortrail.findings import Edit, Finding, Fix
from tensortrail.plurals import counted

if TYPE_CHECKING:
    from tensortrail.tracer.reading.timeline import RunTimeline


def run(options: Namespace) -> int:
    from tensortrail.cli.recorded_run import findings_of, opened_run

    timeline = opened_run(options.run)
    if timeline is None:
        return FAILED
    report = findings_of(timeline, options.select or "")
    changed = Changed()
    stale = {each.site.file: timeline.changed(each.site.file) for each in report.findings}
    _edit(report.findings, options, changed)
    if options.unsafe_fixes:
        _set(report.findings, timeline, options, changed)
    left = len(report.findings) - len(changed.mended)
    done = "would be fixed" if options.diff else "fixed"
    say(f"{counted(len(changed.mended), 'finding')} {done}, {left} left")
    for line in _left(report.findings, stale, options, changed):
        say(f"  {line}")
    if changed.failed:
        return FAILED
    return FOUND if left or (options.diff and changed.mended) else CLEAN


def _left(
    findings: Sequence[Finding], stale: Mapping[str, str], options: Namespace, changed: Changed
) -> Iterator[str]:
    left = [each for each in findings if each not in changed.mended]

    def why(finding: Finding) -> str:
        other = stale[finding.site.file]
        return f"{other}: trace it again" if other else _why_left(finding, options)

    yield from named(left, why)


def _why_left(finding: Finding, options: Namespace) -> str:
    from tensortrail.tracer.exports.closing import has_patch

    if not options.unsafe_fixes and has_patch(finding):
        return "its patch needs --unsafe-fixes"
    edited = next((each for each in finding.fixes if each.edits), None)
    if edited is not None:
        return "its patch does not fit beside the others: trace the program again, then fix it"
    return without_patch(finding)


@dataclass
class Changed:
    """What was changed so far, or would be."""

    files: set[str] = field(default_factory=set)
    mended: list[Finding] = field(default_factory=list)
    failed: bool = False


def _edit(findings: Sequence[Finding], options: Namespace, changed: Changed) -> None:
    """The edits that findings bring along."""
    from tensortrail.analyzer.fixing.fixer import allowed
    from tensortrail.files import read

    by_file: dict[str, list[tuple[Finding, Fix]]] = defaultdict(list)
    for finding in findings:
        fixes = (each for each in finding.fixes if each.edits)
        fix = next((each for each in fixes if allowed(each, options.unsafe_fixes)), None)
        if fix is not None:
            by_file[fix.edits[0].site.file].append((finding, fix))
    for path, todo in sorted(by_file.items()):
        try:
            before = read(path)
            after, mended = _together(before, todo)
            _put(path, before, after, options, changed)
            changed.mended += mended
        except OSError as error:
            say(f"{path}: {error.strerror or error}")
            changed.failed = True


def _together(data: bytes, todo: Sequence[tuple[Finding, Fix]]) -> tuple[bytes, list[Finding]]:
    """The bytes with all fixes that fit together. What several ask for is put in once."""
    from tensortrail.analyzer.fixing.edits import apply

    taken: list[Edit] = []
    mended: list[Finding] = []
    for finding, fix in todo:
        new = [each for each in fix.edits if each not in taken]
        if any(_overlap(one, other) for one in new for other in taken):
            continue
        try:
            ast.parse(apply(data, [*taken, *new]))
        except (SyntaxError, ValueError):
            continue
        taken += new
        mended.append(finding)
    return apply(data, taken), mended


def _overlap(one: Edit, other: Edit) -> bool:
    first, second = sorted((one.site, other.site), key=lambda each: (each.start, each.end))
    return second.start < first.end or (first.start, first.end) == (second.start, second.end)


def _set(
    findings: Sequence[Finding], timeline: RunTimeline, options: Namespace, changed: Changed
) -> None:
    """Settings of calls, for findings without an edit and in files that have no other change:
    places in a changed file are other ones."""
    from tensortrail.analyzer.fixing.suggestions import plan

    left = [each for each in findings if each not in changed.mended]
    wanted = plan(left, timeline.changed)
    for path, patch in wanted.files:
        if path in changed.files:
            say(f"{path} has another change: trace it again for its settings")
            continue
        try:
            _put(path, patch.before, patch.after, options, changed)
        except OSError as error:
            say(f"{path}: {error.strerror or error}")
            changed.failed = True
            continue
        for each in wanted.suggestions:
            if not each.left and each.setting.at and each.setting.at.file == path:
                changed.mended += each.findings


def _put(path: str, before: bytes, after: bytes, options: Namespace, changed: Changed) -> None:
    from tensortrail.analyzer.fixing.previews import unified_diff
    from tensortrail.files import write

    if options.diff:
        write_text(unified_diff(os.path.relpath(path), before, after), sys.stdout)
    elif after != before:
        write(path, after, judged=before)
    changed.files.add(path)
