"""`tensortrail doctor DIR_OR_FILE`: whether a stored checkpoint is whole and would load."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from shlex import quote
from typing import TYPE_CHECKING

from tensortrail.cli.console import fail, say, write_output
from tensortrail.cli.doctor.report import (
    checks_as_objects,
    chosen_codes,
    code_for,
    in_format,
    report_of,
    write_report,
)
from tensortrail.cli.exit_codes import CLEAN, FAILED, FOUND
from tensortrail.plurals import counted

if TYPE_CHECKING:
    from tensortrail.doctor.checkpoint.examine import Examination
    from tensortrail.findings import Report


def run(options: Namespace) -> int:
    from tensortrail.doctor.checkpoint.folder import NothingHere

    paths = _paths(options)
    if len(paths) > 1 and (told := _one_only(options)):
        fail(f"{told} takes one folder or file, and {len(paths)} are named")
        return FAILED
    options.path = paths[0]
    if options.manifest == "write":
        return _listed(options)
    try:
        found = _examined(options, paths)
    except (NothingHere, OSError) as error:
        fail(str(error))
        return FAILED
    if not found.ran:
        fail(f"no check could run on {', '.join(paths)}", *_why(found))
        return FAILED
    write_report(options, _rendered(found, options))
    if options.html:
        _drawn(found, options.html)
    if options.repair and found.findings:
        return _repaired(found, options)
    all_checked = len(paths) == 1 and not (options.select or options.ignore)
    if all_checked and _can_be_repaired(found):
        say(
            f"tensortrail: a repaired copy: tensortrail doctor {quote(paths[0])} "
            "--repair NEW_FOLDER"
        )
    return code_for(found, options)


def _drawn(found: Examination, to: str) -> None:
    from importlib.resources import files

    from tensortrail.doctor.checkpoint.picture import page

    style = files("tensortrail.tracer.exports") / "page" / "page.css"
    write_output(page(found, style.read_text(encoding="utf-8")), to, "--html")
    say(f"the picture was written to {to}")


def _listed(options: Namespace) -> int:
    from tensortrail.doctor.checkpoint.manifest import NAME, write_manifest

    if not os.path.isdir(options.path):
        fail(f"{options.path} is not a folder: a manifest lists the files of one")
        return FAILED
    try:
        count = write_manifest(options.path)
    except OSError as error:
        fail(f"{NAME} was not written: {error.strerror or error}")
        return FAILED
    say(f"{os.path.join(options.path, NAME)} lists {counted(count, 'file')}")
    return CLEAN


def _can_be_repaired(found: Examination) -> bool:
    from tensortrail.doctor.checkpoint.repair import CannotRepair, planned

    if not found.findings:
        return False
    try:
        return bool(planned(found).done)
    except CannotRepair:
        return False


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


def _paths(options: Namespace) -> list[str]:
    """Of several files in one folder, the folder once."""
    if not options.folders:
        return list(options.paths)
    folders = (path if os.path.isdir(path) else os.path.dirname(path) for path in options.paths)
    return list(dict.fromkeys(folder or "." for folder in folders))


def _one_only(options: Namespace) -> str:
    """The option that can be about one checkpoint alone."""
    given = {"--repair": options.repair, "--manifest": options.manifest, "--model": options.model}
    return next((name for name, value in {**given, "--html": options.html}.items() if value), "")


def _examined(options: Namespace, paths: Sequence[str]) -> Examination:
    from functools import reduce

    from tensortrail.cli.progress import LateProgress
    from tensortrail.doctor.checkpoint.examine import examine, together

    codes, verify = chosen_codes(options), options.manifest == "verify"
    show = LateProgress() if sys.stderr.isatty() else nullcontext()
    with show as progress:
        more = (progress, options.model, options.values, verify)
        return reduce(together, [examine(path, codes, *more) for path in paths])


def _why(found: Examination) -> Iterator[str]:
    yield from found.problems
    if found.below:
        told = ", ".join(os.path.join(found.checkpoint.path, each) for each in found.below[:5])
        yield f"there are weights in the folders below: {told}"
    if not found.problems and not found.below:
        yield "there are no weight files and no index in it"


def _rendered(found: Examination, options: Namespace) -> str:
    checkpoint = found.checkpoint
    files = len(checkpoint.files) + len(checkpoint.indexes)
    files += len(checkpoint.sizes) + 1 if checkpoint.distributed else 0
    report = report_of(found, files, _read(found), options.verbose)
    return _json(found, report) if options.format == "json" else in_format(options, report)


def _read(found: Examination) -> str:
    """What there was to judge."""
    files = found.checkpoint.files
    tensors = sum(len(each.tensors) for each in files)
    sizes = [each.size for each in files]
    if (metadata := found.checkpoint.distributed) is not None:
        tensors += len(metadata.tensors)
        sizes += found.checkpoint.sizes.values()
    inside = f"{counted(len(sizes), 'file')} of {sum(sizes):,} bytes"
    read = f"read: {counted(tensors, 'tensor')} in {inside}"
    if metadata is not None and metadata.usable:
        from tensortrail.doctor.checkpoint.world_sizes import told

        read += f"; {told(metadata)}"
    return read


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
