"""Files written for a later Python than the one that runs the check: people read that once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tensortrail.analyzer.choosing.own import UNREADABLE
from tensortrail.analyzer.reading.parsing import NEWER

if TYPE_CHECKING:
    from tensortrail.findings import Finding

FOR_PEOPLE = ("text", "concise", "markdown", "github")
_SHOWN = 3


def told_together(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """All that are not for this Python as the first of them."""
    newer = [each for each in findings if each.code == UNREADABLE and each.message == NEWER]
    if len(newer) < 2:
        return tuple(findings)
    names = [each.site.file for each in newer[:_SHOWN]]
    shown = ", ".join([*names, *["..."] * (len(newer) > _SHOWN)])
    first = replace(newer[0], message=f"{len(newer)} files ({shown}) are {NEWER}")
    others = {id(each) for each in newer[1:]}
    return tuple(first if each is newer[0] else each for each in findings if id(each) not in others)
