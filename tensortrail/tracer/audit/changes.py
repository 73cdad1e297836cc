"""What became of one tensor between two moments."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tensortrail.tracer.audit.marks import Mark


class Became(str, Enum):
    """What a tensor is in the later snapshot."""

    UNCHANGED = "unchanged"
    RESTORED = "restored"  # it was different or without memory between, or written again
    CHANGED = "changed"
    NEVER_RESTORED = "never restored"  # it lost its memory between, and nobody wrote since
    FREED = "without memory"
    RETYPED = "of another type"
    GONE = "gone"
    NEW = "new"


NAMED_OTHERWISE = ("called ", "joined in ", "parts of ")
HARMLESS = (Became.UNCHANGED, Became.RESTORED)


@dataclass(frozen=True)
class Change:
    name: str
    became: Became
    before: Mark | None = None
    after: Mark | None = None
    said: tuple[str, ...] = ()
    """NaN since, no longer shared, matched with another name."""

    @property
    def troubles(self) -> list[str]:
        """What was said, without other names."""
        return [each for each in self.said if not each.startswith(NAMED_OTHERWISE)]

    @property
    def is_harmless(self) -> bool:
        """It holds the values that it held, and nothing else is to be said."""
        return self.became in HARMLESS and not self.troubles

    @property
    def writer(self) -> str:
        return self.after.writer if self.after is not None else ""
