"""`tensortrail settings`: the settings that a recorded run calls for."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tensortrail.cli.console import say, write_bytes
from tensortrail.cli.exit_codes import CLEAN, FAILED, FOUND
from tensortrail.plurals import counted

if TYPE_CHECKING:
    from tensortrail.analyzer.fixing.suggestions import Plan
    from tensortrail.findings import Finding


def run(options: Namespace) -> int:
    from tensortrail.analyzer.fixing.suggestions import plan
    from tensortrail.cli.recorded_run import findings_of, opened_run

    timeline = opened_run(options.run)
    if timeline is None:
        return FAILED
    report = findings_of(timeline, options.select or "")
    for problem in report.problems:
        say(f"tensortrail: {problem}")
    wanted = plan(report.findings, timeline.changed)
    done = _applied(wanted) if options.apply else wanted.files
    _show(wanted, options, report.problems)
    if not options.apply:
        for path in (each for each, _ in wanted.files if os.path.relpath(each).startswith("..")):
            say(f"{path} is outside this folder, where `patch` does not write: use --apply")
    say(_summary(wanted, len(done), options.apply))
    if report.findings and not wanted.suggestions:
        say(_without_settings(report.findings))
    if len(done) < len(wanted.files):
        return FAILED
    return FOUND if wanted.left or (wanted.files and not options.apply) else CLEAN


def _without_settings(findings: Sequence[Finding]) -> str:
    from tensortrail.tracer.exports.closing import has_patch

    patched = any(map(has_patch, findings))
    more = "tensortrail fix --unsafe-fixes --diff" if patched else "tensortrail report"
    found = counted(len(findings), "finding")
    return f"  its {found} cannot be fixed by a setting; what to change: {more}"


def _applied(wanted: Plan) -> list[str]:
    """The files that were written."""
    from tensortrail.files import write

    done = []
    for path, changed in wanted.files:
        try:
            write(path, changed.after, judged=changed.before)
            done.append(path)
        except OSError as error:
            say(f"{path}: {error.strerror or error}")
    return done


def _show(wanted: Plan, options: Namespace, problems: tuple[str, ...]) -> None:
    from tensortrail.reporters.suggestions import as_json, as_text

    if options.format == "json":
        text = as_json(wanted.suggestions, wanted.diff, problems) + "\n"
    elif options.apply:
        text = as_text(wanted.left, "")
    else:
        text = as_text(wanted.suggestions, wanted.diff)
    write_bytes(text.encode("utf-8", "surrogateescape"), sys.stdout)


def _summary(wanted: Plan, files: int, applied: bool) -> str:
    settings, left = len(wanted.suggestions), len(wanted.left)
    if not settings:
        return "this run suggests no settings"
    if applied:
        return f"{counted(files, 'file')} changed, {counted(left, 'setting')} to set by hand"
    return (
        f"{counted(settings - left, 'setting')} in a patch for {counted(files, 'file')}, "
        f"{left} to set by hand"
    )
