"""What was asked of a recording, beside where it goes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tensortrail.tracer.events.focus import Focus, parse_focus, parse_size, parse_steps
from tensortrail.tracer.rehearsal.devices.spec import Spec, parse_spec

if TYPE_CHECKING:
    from tensortrail.tracer.noticing.written_checkpoints import Judge

LIMIT = 1 << 30


@dataclass(frozen=True)
class Options:
    focus: Focus = field(default_factory=Focus)
    limit: int = LIMIT
    """The most bytes of the trail of a process."""
    steps: range = range(0)
    """Those that have every operation recorded."""
    rehearse: Spec | None = None
    """The devices to simulate."""
    guard: bool = False
    """Stop the program before it destroys data."""
    verify: Judge | None = None
    """Judges what was just written; it is pickled with the processes that are spawned."""
    audit: bool = False
    """Read the values of weights."""


def options_from(
    *,
    focus: str = "",
    max_size: str = "1GB",
    ops: str = "",
    rehearse: str = "",
    guard: bool = False,
    verify: Judge | None = None,
    audit: bool = False,
) -> Options:
    """From the texts that people write. Raises `FocusError` and `SpecError`."""
    return Options(
        focus=parse_focus(focus),
        limit=parse_size(max_size),
        steps=parse_steps(ops),
        rehearse=parse_spec(rehearse) if rehearse else None,
        guard=guard,
        verify=verify,
        audit=audit,
    )
