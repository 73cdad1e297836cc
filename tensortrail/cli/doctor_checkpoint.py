"""`tensortrail doctor DIR_OR_FILE`: whether a stored checkpoint is whole and would load."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tensortrail import __version__
from tensortrail.cli.console import counted, fail, say, wants_color
from tensortrail.cli.doctor_report import (
    checks_as_objects,
    chosen_codes,
    of_checks,
    width,
    write_report,
)
from tensortrail.cli.exit_codes import CLEAN, FAILED, FOUND

if TYPE_CHECKING:
    from tensortrail.doctor.checkpoint.examine import Examination
    from tensortrail.findings import Report


def run(options: Namespace) -> int:
    from tensortrail.doctor.checkpoint.folder import NothingHere

    if options.manifest == "write":
        return _listed(options)
    try:
        found = _examined(options)
    except (NothingHere, OSError) as error:
        fail(str(error))
        return FAILED
    if not found.ran:
        fail(f"no check could run on {options.path}", *_why(found))
        return FAILED
    write_report(options, _rendered(found, options))
    if options.repair and found.findings:
        return _repaired(found, options)
    if found.findings:
        return CLEAN if options.exit_zero else FOUND
    return FAILED if found.problems else CLEAN


def _listed(options: Namespace) -> int:
    from tensortrail.doctor.checkpoint.manifest import NAME, write_manifest

    if not os.path.isdir(options.path):
        fail(f"{options.path} is no folder: a manifest lists the files of one")
        return FAILED
    try:
        count = write_manifest(options.path)
    except OSError as error:
        fail(f"{NAME} was not written: {error.strerror or error}")
        return FAILED
    say(f"{os.path.join(options.path, NAME)} lists {counted(count, 'file')}")
    return CLEAN


def _repaired(found: Examination, options: Namespace) -> int:
    from tensortrail.doctor.checkpoint.repair import CannotRepair, repair

    try:
        plan, judged = repair(found, options.repair, options.link)
    except (CannotRepair, OSError) as error:
        fail(f"nothing was written to {options.repair}", str(error))
        return FOUND
    for each in plan.done:
        say(each)
    checked = f"{counted(len(judged.ran), 'check')} ran on it and found nothing"
    say(f"written to {options.repair}; {checked}")
    return CLEAN


def _examined(options: Namespace) -> Examination:
    from tensortrail.cli.progress import LateProgress
    from tensortrail.doctor.checkpoint.examine import examine

    codes, verify = chosen_codes(options), options.manifest == "verify"
    if not sys.stderr.isatty():
        return examine(options.path, codes, None, options.model, options.values, verify)
    with LateProgress() as progress:
        return examine(options.path, codes, progress, options.model, options.values, verify)


def _why(found: Examination) -> Iterator[str]:
    yield from found.problems
    if found.below:
        told = ", ".join(os.path.join(found.checkpoint.path, each) for each in found.below[:5])
        yield f"there are weights in the folders below: {told}"
    if not found.problems and not found.below:
        yield "there are no weight files and no index in it"


def _rendered(found: Examination, options: Namespace) -> str:
    from tensortrail.findings import Report
    from tensortrail.reporters import render
    from tensortrail.rules import all_rules

    rules = all_rules()
    report = Report(
        findings=found.findings,
        rules={each.code: rules[each.code].info() for each in found.findings},
        files_checked=len(found.checkpoint.files)
        + len(found.checkpoint.indexes)
        + (len(found.checkpoint.sizes) + 1 if found.checkpoint.distributed else 0),
        problems=found.problems,
        root=os.path.abspath("."),
        version=__version__,
        notes=(_read(found), *of_checks(found.checks, options.verbose)),
    )
    if options.format == "json":
        return _json(found, report)
    color = options.output is None and wants_color(options.color, sys.stdout)
    return render(options.format, report, color=color, width=width())


def _read(found: Examination) -> str:
    """What there was to judge."""
    files = found.checkpoint.files
    tensors = sum(len(each.tensors) for each in files)
    sizes = [each.size for each in files]
    if (metadata := found.checkpoint.distributed) is not None:
        tensors += len(metadata.tensors)
        sizes += found.checkpoint.sizes.values()
    inside = f"{counted(len(sizes), 'file')} of {sum(sizes):,} bytes"
    return f"read: {counted(tensors, 'tensor')} in {inside}"


def _json(found: Examination, report: Report) -> str:
    from tensortrail.reporters.json import as_object
    from tensortrail.reporters.jsontext import to_json

    return to_json({
        "path": found.checkpoint.path,
        "files": report.files_checked,
        "checks": checks_as_objects(found.checks),
        "findings": [as_object(each) for each in report.findings],
        "problems": list(report.problems),
    })  # fmt: skip
