"""The compiler measures each guard that it builds; tests do without."""

from __future__ import annotations

import sys


def leave_guards_unmeasured() -> None:
    """A metric of torch's, for which it empties the processor's cache: two fifths of the time that
    a small graph takes to compile. Nothing reads it."""
    if guards := sys.modules.get("torch._dynamo.guards"):
        guards.profile_guard_manager = lambda *_: 0.0  # type: ignore[attr-defined]
