"""`--rehearse-xfail FILE`: tests that are known to fail in a rehearsal, and why."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple


class Expected(NamedTuple):
    pattern: str
    reason: str

    def fits(self, nodeid: str) -> bool:
        """The pattern is a test, a class or file of tests, or has `*` in it."""
        inside = nodeid.startswith((f"{self.pattern}::", f"{self.pattern}["))
        return inside or nodeid == self.pattern or fnmatchcase(nodeid, self._literal())

    def _literal(self) -> str:
        return self.pattern.replace("[", "[[]")  # parameters of a test, no set of letters


def expected_failures(file: str) -> list[Expected]:
    """One a line: `tests/test_it.py::test_one  # why`. OSError and UnicodeError if unreadable."""
    found = []
    for line in Path(file).read_text(encoding="utf-8").splitlines():
        pattern, _, reason = line.strip().partition(" #")
        if pattern and not pattern.startswith("#"):
            found.append(Expected(pattern.strip(), reason.strip() or "named in the file"))
    return found
