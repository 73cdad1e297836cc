"""The findings of a run that stand at a failure, the root before its consequences."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules.timeline import Did
from tensortrail.tracer.explaining.phase_traces import traces
from tensortrail.tracer.identity.errors_behind import with_those_behind
from tensortrail.tracer.identity.sites import OWNERS, USER
from tensortrail.tracer.noticing.failed_operands import Failure
from tensortrail.tracer.reading.findings_of_run import findings
from tensortrail.tracer.reading.roots import (
    RAISES_NOTHING,
    Key,
    descent,
    is_consequence,
    line_of,
    lines_that_raised,
)
from tensortrail.tracer.reading.timeline import RunTimeline

META, META_DATA = "meta", "meta-data"
_IN_ANOTHER_PROCESS = re.compile(r'^ *File "([^"\n]+)", line (\d{1,9})', re.MULTILINE)
"""A line of the traceback that a worker's exception has in its message here."""
OF_STATE_DICTS = "SHD"
"""The family of what is saved and loaded."""
MOST = 3
"""Findings that are told at one failure."""


def standing_findings(
    error: BaseException,
    failure: Failure | None,
    timeline: RunTimeline,
    phase: str = "",
    family: str = "",
    weights: Collection[str] = (),
) -> tuple[Finding, ...]:
    """What the rules find in this run about the tensors or the lines of the failure, which has a
    message of that family; or about how these weights were saved, for one that was told where they
    are loaded."""
    found = [each for each in findings(timeline).findings if each.severity is not Severity.NOTE]
    lines = set(_user_lines(error))
    kin = _kin(failure, timeline) if failure else set()
    others = lines_that_raised(timeline) - lines
    standing = [
        each
        for each in found
        if line_of(each.site) in lines
        or (line_of(each.site) not in others and not kin.isdisjoint(each.storages))
    ]
    roots = [each for each in standing if not is_consequence(each)]
    without_values = _has_derived(failure, timeline) if failure is not None else family == META_DATA
    if not roots and without_values:
        here = traces(phase, timeline).by if phase else lambda _: True
        roots = [each for each in found if not is_consequence(each) and _on_meta(each, timeline)]
        roots = [each for each in roots if here(each)]
    if all(each.severity is not Severity.ERROR for each in roots):
        roots = [each for each in found if _is_of_weights(each, weights)] or roots
    if all(each.code.startswith(RAISES_NOTHING) for each in roots):
        roots = [each for each in standing if each not in roots] + roots
        return tuple(roots[:MOST])
    ordered = sorted(roots, key=lambda each: each.worst_first)
    return tuple(ordered[:MOST])


def _is_of_weights(finding: Finding, names: Collection[str]) -> bool:
    is_error = finding.severity is Severity.ERROR and finding.code.startswith(OF_STATE_DICTS)
    return is_error and any(f"`{name}`" in finding.message for name in names)


def _user_lines(error: BaseException) -> Iterator[tuple[str, int]]:
    """The user's lines that the exception, and those behind it, came through."""
    for each in with_those_behind(error, in_groups=False):
        step = each.__traceback__
        while step is not None:
            file = step.tb_frame.f_code.co_filename
            if OWNERS[file] == USER:
                yield os.path.abspath(file), step.tb_lineno
            step = step.tb_next
        for file, line in _IN_ANOTHER_PROCESS.findall(str(each)):
            if OWNERS[file] == USER:
                yield os.path.abspath(file), int(line)


def _kin(failure: Failure, timeline: RunTimeline) -> set[Key]:
    """The storages of the operands, and those that their values came from."""
    found: set[Key] = set()
    for operand in failure.operands:
        storage = timeline.here(operand["storage"]) if operand["storage"] else None
        if storage is not None:
            found |= descent(storage, timeline)
    return found


def _has_derived(failure: Failure, timeline: RunTimeline) -> bool:
    """An operand on meta that nothing in the run put there: it was computed from another one."""
    for operand in failure.operands:
        if operand["device"] == META:
            storage = timeline.here(operand["storage"]) if operand["storage"] else None
            if storage is None or not any(e.did is Did.MOVE for e in timeline.history(storage)):
                return True
    return False


def _on_meta(finding: Finding, timeline: RunTimeline) -> bool:
    storages = (timeline.storage(*key) for key in finding.storages)
    return any(each is not None and each.device == META for each in storages)
