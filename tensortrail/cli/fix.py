"""`tensortrail fix`: apply what a recorded run suggests."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections import defaultdict

from tensortrail.cli.console import say, write_text
from tensortrail.cli.exit_codes import CLEAN, FAILED, FOUND
from tensortrail.findings import Finding, Fix


def run(options: Namespace) -> int:
    from tensortrail.analyzer.fixer import allowed, apply_together, unified_diff
    from tensortrail.cli.report import findings_of, opened_run
    from tensortrail.files import read, write

    timeline = opened_run(options.run)
    if timeline is None:
        return FAILED
    report = findings_of(timeline, options.select or "")
    by_file: dict[str, list[tuple[Finding, Fix]]] = defaultdict(list)
    other = 0
    for finding in report.findings:
        fix = next((fix for fix in finding.fixes if allowed(fix, options.unsafe_fixes)), None)
        if fix is None:
            other += 1
            continue
        by_file[fix.edits[0].site.file].append((finding, fix))
    fixed, failed = 0, 0
    for path, todo in sorted(by_file.items()):
        try:
            before = read(path)
            after, applied = apply_together(before, todo)
            if options.diff:
                write_text(unified_diff(os.path.relpath(path), before, after), sys.stdout)
            elif after != before:
                write(path, after, judged=before)
        except OSError as error:
            say(f"{path}: {error.strerror or error}")
            failed += len(todo)
            continue
        fixed += applied
        other += len(todo) - applied
    done = "would be fixed" if options.diff else "fixed"
    say(f"{fixed} findings {done}, {other + failed} left")
    if failed:
        return FAILED
    return FOUND if options.diff and fixed else CLEAN
