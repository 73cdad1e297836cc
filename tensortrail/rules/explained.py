"""What one finding says better than another about the same line is reported once."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tensortrail.findings import Finding, Severity
from tensortrail.rules.base import Rule


def without_explained(found: Collection[Finding], rules: Iterable[Rule]) -> list[Finding]:
    """The findings, but those of codes that another finding's rule explains at their line. A note
    explains notes only: it may not be shown."""
    explains = {rule.code: rule.explains for rule in rules if rule.explains}
    said = {
        (code, each.site.file, each.site.line, is_note)
        for each in found
        for code in explains.get(each.code, ())
        for is_note in (True, each.severity is Severity.NOTE)
    }
    return [each for each in found if _key(each) not in said]


def _key(each: Finding) -> tuple[str, str, int, bool]:
    return each.code, each.site.file, each.site.line, each.severity is Severity.NOTE
