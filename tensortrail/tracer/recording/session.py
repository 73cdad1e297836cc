"""A recording begins: where its trail goes, and what its header says."""

from __future__ import annotations

import os
import platform
import sys
import threading
import time
from pathlib import Path
from typing import Any

import torch

from tensortrail.tracer.events.focus import Focus
from tensortrail.tracer.noticing.written_checkpoints import Judge
from tensortrail.tracer.recording.running import Session, running
from tensortrail.tracer.recording.spawned_process import follow
from tensortrail.tracer.rehearsal.devices.spec import Spec
from tensortrail.tracer.trail.kept_runs import keep_out_of_git
from tensortrail.tracer.trail.run_files import DEFAULT_DIRECTORY
from tensortrail.version import __version__

__all__ = ["LIMIT", "AlreadyRecording", "Session", "begin", "run_name", "running"]

LIMIT = 1 << 30


class AlreadyRecording(RuntimeError):
    pass


def begin(
    directory: str | os.PathLike[str] | None = None,
    focus: Focus | None = None,
    limit: int = LIMIT,
    argv: list[str] | None = None,
    steps: range = range(0),
    rehearse: Spec | None = None,
    guard: bool = False,
    verify: Judge | None = None,
    audit: bool = False,
    run: str = "",
    worker: str = "",
) -> Session:
    """Start recording in this process. Raises OSError if the directory cannot be written.

    `verify` judges what was just written; it is pickled with the processes that are spawned.
    Processes that give the same name for `run` record one run, as `worker`s of it."""
    if (already := running()) is not None:
        raise AlreadyRecording(f"this process is recorded already, in {already.directory}")
    run = run or run_name()
    chosen = os.path.abspath(directory or os.path.join(DEFAULT_DIRECTORY, run))
    Path(chosen).mkdir(parents=True, exist_ok=True)
    if Path(DEFAULT_DIRECTORY).absolute() in Path(chosen).parents:
        keep_out_of_git(Path(DEFAULT_DIRECTORY))
    devices = rehearse.text if rehearse is not None else ""
    header = {**_header(run, argv), "worker": worker, "rehearse": devices}
    session = Session(
        chosen, header, focus or Focus(), limit, steps, rehearse, guard, verify, audit
    )
    follow(session)
    session.start()
    return session


def run_name() -> str:
    """The same in all ranks that one launcher started on this machine."""
    if "TORCHELASTIC_RUN_ID" in os.environ:
        return f"{os.environ['TORCHELASTIC_RUN_ID']}-{os.getppid()}"
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"


def _header(run: str, argv: list[str] | None) -> dict[str, Any]:
    return {
        "version": __version__,
        "run": run,
        "pid": os.getpid(),
        "rank": _number("RANK"),
        "local_rank": _number("LOCAL_RANK"),
        "host": platform.node(),
        "visible": os.environ.get("CUDA_VISIBLE_DEVICES", ""),
        "argv": argv if argv is not None else list(sys.argv),
        "cwd": os.getcwd(),
        "python": sys.version.split()[0],
        "torch": str(torch.__version__),
        "thread": threading.current_thread().name,
    }


def _number(variable: str) -> int | None:
    value = os.environ.get(variable, "")
    return int(value) if value.isdigit() else None
