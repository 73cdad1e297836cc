"""Leaves out what a comment in a YAML file silences: `# tensortrail: ignore[CFG901] reason`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tensortrail.findings import Finding

_IGNORE = re.compile(r"(?:^|\s)#\s*tensortrail:\s*ignore\s*(?:\[([^\]]*)\])?")
_CODE = re.compile(r"[A-Za-z]+\d+")


def silenced(findings: Iterable[Finding], path: str) -> list[Finding]:
    """The findings that no comment on their line silences. JSON has no comments."""
    found = list(findings)
    if not found or path.lower().endswith(".json"):
        return found
    lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    return [each for each in found if not _ignores(lines, each)]


def _ignores(lines: list[str], finding: Finding) -> bool:
    line = lines[finding.site.line - 1] if 0 < finding.site.line <= len(lines) else ""
    if not (said := _IGNORE.search(line)):
        return False
    codes = {each.upper() for each in _CODE.findall(said[1] or "")}
    return not codes or finding.code in codes
