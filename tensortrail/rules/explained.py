"""What one finding says better than another about the same line is reported once."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tensortrail.findings import Finding
from tensortrail.rules.base import Rule


def without_explained(found: Collection[Finding], rules: Iterable[Rule]) -> list[Finding]:
    """The findings, but those of codes that another finding's rule explains at their line."""
    explains = {rule.code: rule.explains for rule in rules if rule.explains}
    said = {
        (code, each.site.file, each.site.line)
        for each in found
        for code in explains.get(each.code, ())
    }
    return [each for each in found if (each.code, each.site.file, each.site.line) not in said]
