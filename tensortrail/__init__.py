"""Which tensor is where, who put it there, and what to change."""

from __future__ import annotations

from time import time_ns
from typing import TYPE_CHECKING, Any

from tensortrail.version import __version__

if TYPE_CHECKING:
    import os

    from tensortrail.tracer.audit.snapshot import Snapshot
    from tensortrail.tracer.entrances.block import Run
    from tensortrail.tracer.noticing.written_checkpoints import Judge
    from tensortrail.tracer.recording.stop import Stopped

BEGUN = time_ns()
"""Before any other module of ours was imported: what changed since may be known as it was."""
__all__ = ["Stopped", "__version__", "fingerprint", "trace"]


def trace(
    directory: str | os.PathLike[str] | None = None,
    *,
    focus: str = "",
    max_size: str = "1GB",
    ops: str = "",
    rehearse: str = "",
    guard: bool = False,
    verify_saves: bool = False,
    audit: bool = False,
) -> Run:
    """Record which tensor is where: `with tensortrail.trace("runs/x") as run: ...`.

    `focus`, `max_size`, `ops`, `rehearse`, `guard`, `verify_saves` and `audit` are
    those of `tensortrail trace --help`."""
    from tensortrail.tracer.entrances.block import Run
    from tensortrail.tracer.recording.options import options_from

    options = options_from(
        focus=focus,
        max_size=max_size,
        ops=ops,
        rehearse=rehearse,
        guard=guard,
        verify=_judge() if verify_saves else None,
        audit=audit,
    )
    return Run(directory, options)


def fingerprint(model: Any, name: str = "") -> Snapshot:
    """What the parameters, buffers and tensor attributes of a model hold, as a snapshot that can be
    saved, read again elsewhere and compared: `before.compare(after)`. Needs no recording."""
    from tensortrail.tracer.audit.collecting import marks_of, tensors_of
    from tensortrail.tracer.audit.snapshot import Snapshot

    return Snapshot(name, marks_of(tensors_of(model)))


def __getattr__(name: str) -> Any:
    """Of a start of the command nothing is needed here; a program asks for its exception late."""
    if name == "Stopped":
        from tensortrail.tracer.recording.stop import Stopped

        return Stopped
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _judge() -> Judge:
    from tensortrail.doctor.checkpoint.after_save import judged

    return judged
