"""Examples of a rule, what it flags and what it does not: its tests, and part of its page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from tensortrail.rules.unchanging import unchanging


@unchanging(frozen=True, slots=False)
class Bad:
    """Code the rule must flag on exactly these lines."""

    source: str
    lines: tuple[int, ...]
    fixed: str | None = None
    """The source after all fixes, unsafe ones too; None when the rule offers none here."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Other files of the little project, by relative path."""
    path: str = "example.py"
    instead: str | None = None
    """What to write where no fix is offered. The rule must not flag it."""

    @property
    def better(self) -> str | None:
        """What a page shows as the right way."""
        return self.fixed or self.instead


@unchanging(frozen=True, slots=False)
class Good:
    """Code the rule must not flag."""

    source: str
    files: Mapping[str, str] = field(default_factory=dict)
    path: str = "example.py"
