"""What the checks find in a checkpoint that a program has just written, as plain values."""

from __future__ import annotations

import os
from typing import Any

from tensortrail.doctor.checkpoint.examine import examine
from tensortrail.doctor.checkpoint.folder import NothingHere
from tensortrail.doctor.checkpoint.formats.readers import READERS, ending_of
from tensortrail.findings import Finding
from tensortrail.rules import all_rules

MOST = 20
NOT_OF_ITS_WRITER = ("CKP811",)
"""Warnings to those who load what others wrote: a program knows its own classes."""


def judged(path: str) -> dict[str, Any]:
    """Everything without values: names, sizes, offsets, indexes, structure."""
    ending = ending_of(os.path.basename(path))
    if os.path.isfile(path) and ending not in READERS:
        return {"problem": f"no check reads a file of the ending {ending!r}"}
    chosen = {rule.code for rule in all_rules().values() if rule.default}
    try:
        found = examine(path, chosen.difference(NOT_OF_ITS_WRITER))
    except NothingHere as error:
        return {"problem": str(error)}
    if not found.ran:
        return {"problem": "; ".join(found.problems) or "there are no weights in it"}
    return {
        "checks": len(found.ran),
        "found": [_plain(each) for each in found.findings[:MOST]],
        "problems": list(found.problems[:MOST]),
    }


def _plain(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "file": finding.site.file,
        "message": finding.message,
        "evidence": dict(finding.evidence),
    }
