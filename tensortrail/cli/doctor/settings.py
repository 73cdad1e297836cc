"""`tensortrail doctor settings FILE...`: settings that contradict each other or do nothing."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from tensortrail.cli.console import fail
from tensortrail.cli.doctor.report import (
    checks_as_objects,
    chosen_codes,
    code_for,
    in_format,
    report_of,
    write_report,
)
from tensortrail.cli.exit_codes import FAILED
from tensortrail.plurals import counted

if TYPE_CHECKING:
    from tensortrail.doctor.settings.examine import Examination
    from tensortrail.findings import Report


def run(options: Namespace) -> int:
    from tensortrail.doctor.settings.examine import examine

    found = examine(options.paths, chosen_codes(options))
    if not found.ran:
        whose = "settings of accelerate, DeepSpeed or transformers"
        fail("no check could run", *found.problems or (f"there are no {whose} in it",))
        return FAILED
    write_report(options, _rendered(found, options))
    return code_for(found, options)


def _rendered(found: Examination, options: Namespace) -> str:
    report = report_of(found, len(found.files), _read(found), options.verbose)
    return _json(found, report) if options.format == "json" else in_format(options, report)


def _read(found: Examination) -> str:
    """Whose settings there were to judge."""
    kinds = dict.fromkeys(file.kind.value for file in found.files)
    others = f"; {counted(found.others, 'other file')} left out" if found.others else ""
    return f"read: {', '.join(kinds)}{others}"


def _json(found: Examination, report: Report) -> str:
    from tensortrail.reporters.json import as_object
    from tensortrail.reporters.jsontext import to_json

    return to_json({
        "files": [{"path": each.path, "kind": each.kind.value} for each in found.files],
        "checks": checks_as_objects(found.checks),
        "findings": [as_object(each) for each in report.findings],
        "problems": list(report.problems),
    })  # fmt: skip
