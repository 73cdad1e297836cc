"""Which tensor is where, who put it there, and what to change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensortrail.tracer.recording.stop import Stopped
from tensortrail.version import __version__

if TYPE_CHECKING:
    import os

    from tensortrail.tracer.entrances.block import Run
    from tensortrail.tracer.noticing.written_checkpoints import Judge

__all__ = ["Stopped", "__version__", "trace"]


def trace(
    directory: str | os.PathLike[str] | None = None,
    *,
    focus: str = "",
    max_size: str = "1GB",
    ops: str = "",
    rehearse: str = "",
    guard: bool = False,
    verify_saves: bool = False,
) -> Run:
    """Record which tensor is where: `with tensortrail.trace("runs/x") as run: ...`.

    `focus`, `max_size`, `ops`, `rehearse`, `guard` and `verify_saves` are those of
    `tensortrail trace --help`."""
    from tensortrail.tracer.entrances.block import Run

    return Run(
        directory,
        focus=focus,
        max_size=max_size,
        ops=ops,
        rehearse=rehearse,
        guard=guard,
        verify=_judge() if verify_saves else None,
    )


def _judge() -> Judge:
    from tensortrail.doctor.checkpoint.after_save import judged

    return judged
