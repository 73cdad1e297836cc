"""`tensortrail doctor plan-save PATH`: what a `save_pretrained` will do, before it does."""

from __future__ import annotations

import os
import shutil
import sys
from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tensortrail import __version__
from tensortrail.cli.console import fail, wants_color
from tensortrail.cli.doctor.report import found_something, write_report
from tensortrail.cli.exit_codes import CLEAN, FAILED, FOUND
from tensortrail.plurals import counted

if TYPE_CHECKING:
    from tensortrail.doctor.saves.plan import SavePlan
    from tensortrail.findings import Finding, Report
    from tensortrail.rules.shared.shard_plan import Limit


def run(options: Namespace) -> int:
    from tensortrail.doctor.library_models import NoModel
    from tensortrail.doctor.saves.plan import plan_save
    from tensortrail.rules.shards.group_split_across_shards import GroupSplitAcrossShards

    if not os.path.exists(options.path):
        fail(f"no such file or directory: {options.path}")
        return FAILED
    try:
        plan = plan_save(options.path, options.max_shard_size, by_file=not options.in_memory)
    except (NoModel, ValueError, OSError) as error:
        fail(f"no save can be planned for {options.path}", str(error))
        return FAILED
    rule = GroupSplitAcrossShards()
    found = tuple(rule.planned(_config(options.path), plan.shards, plan.asked, plan.wrong))
    write_report(options, _rendered(plan, found, options))
    return FOUND if found_something(found, options) and not options.exit_zero else CLEAN


def _config(path: str) -> str:
    return os.path.join(path, "config.json") if os.path.isdir(path) else path


def _rendered(plan: SavePlan, found: tuple[Finding, ...], options: Namespace) -> str:
    from tensortrail.findings import Report
    from tensortrail.reporters import render
    from tensortrail.rules import all_rules

    rules = all_rules()
    report = Report(
        findings=found,
        rules={each.code: rules[each.code].info() for each in found},
        files_checked=1,
        root=os.path.abspath("."),
        version=__version__,
        notes=tuple(_notes(plan)),
    )
    if options.format == "json":
        return _json(plan, report)
    color = options.output is None and wants_color(options.color, sys.stdout)
    width = shutil.get_terminal_size((200, 24)).columns
    return render(options.format, report, color=color, width=width)


def _notes(plan: SavePlan) -> Iterator[str]:
    from tensortrail.rules.shared.sizes import size

    how = "some weights offloaded" if plan.by_file else "all weights in memory"
    yield f"planned: {plan.model}.save_pretrained(max_shard_size={plan.asked!r}), {how}"
    largest = size(max(plan.files.values(), default=0))
    yield f"files: {len(plan.files)}, {size(plan.disk)} on the disk, the largest {largest}"
    if not plan.by_file:
        yield "groups converted together: none is split: all are converted before the split"
    else:
        told = f"{len(plan.shards.cut)} split" if plan.shards.cut else "none is split"
        yield f"groups converted together: {len(plan.groups)}, {told}"
    if plan.shards.cut:
        below, above = _limit(plan.shards.below), _limit(plan.shards.above)
        yield f"nearest sizes that split none: {below} below, {above} above"
    held = ", beside the weights that are kept on the CPU" if plan.by_file else ""
    yield f"memory: {size(plan.memory)} more at the peak{held}; {size(plan.whole)} with one file"


def _limit(limit: Limit | None) -> str:
    return f"{limit.nbytes:,} bytes ({counted(limit.files, 'file')})" if limit else "none"


def _json(plan: SavePlan, report: Report) -> str:
    from tensortrail.reporters.json import as_object
    from tensortrail.reporters.jsontext import to_json

    limits = {"below": plan.shards.below, "above": plan.shards.above}
    return to_json({
        "model": plan.model,
        "max_shard_size": plan.asked,
        "bytes": plan.shards.asked,
        "works": plan.works,
        "converted_by_file": plan.by_file,
        "groups": len(plan.groups),
        "cut": {target: dict(files) for target, files in plan.shards.cut.items()},
        "wrong": list(plan.wrong),
        "nearest": {side: limit and limit._asdict() for side, limit in limits.items()},
        "files": dict(plan.files),
        "memory": plan.memory,
        "memory_of_one_file": plan.whole,
        "disk": plan.disk,
        "findings": [as_object(each) for each in report.findings],
    })  # fmt: skip
