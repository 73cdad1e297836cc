"""Files written for a later Python than the one that runs the check: people read that once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tensortrail.analyzer.choosing.own_findings import UNREADABLE
from tensortrail.analyzer.reading.parsing import NEWER
from tensortrail.files import read

if TYPE_CHECKING:
    from tensortrail.analyzer.choosing.request import CheckResult
    from tensortrail.findings import Finding

FOR_PEOPLE = ("text", "concise", "markdown", "github")
WRITTEN, _, MEND = NEWER.partition(", so not checked: ")
_SHOWN = 3


def is_newer(finding: Finding) -> bool:
    return finding.code == UNREADABLE and finding.message == NEWER


def why_none_was_read(result: CheckResult, paths: Sequence[str]) -> str:
    """Of a folder in which every file that a rule would look at is for a later Python; "" if one
    is not: its findings, or that it has none, are worth a clean exit."""
    found = (*result.findings, *result.known)
    newer = [each.site.file for each in found if is_newer(each)]
    others = (each for each in result.files if each not in newer)
    if len(newer) < len(found) or not newer or not any(map(os.path.isdir, paths)):
        return ""
    if any(map(_is_for_rules, others)):
        return ""
    which = f"{len(newer)} files that use torch are" if newer[1:] else "file that uses torch is"
    return f"nothing was checked: the {which} {WRITTEN}"


def _is_for_rules(path: str) -> bool:
    try:
        return b"torch" in read(path)
    except OSError:
        return False


def told_together(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """All that are not for this Python as the first of them."""
    newer = [each for each in findings if is_newer(each)]
    if len(newer) < 2:
        return tuple(findings)
    names = [each.site.file for each in newer[:_SHOWN]]
    shown = ", ".join([*names, *["..."] * (len(newer) > _SHOWN)])
    first = replace(newer[0], message=f"{len(newer)} files ({shown}) are {NEWER}")
    others = {id(each) for each in newer[1:]}
    return tuple(first if each is newer[0] else each for each in findings if id(each) not in others)
