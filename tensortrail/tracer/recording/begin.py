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

from tensortrail.tracer.recording.options import Options
from tensortrail.tracer.recording.session import Session, running
from tensortrail.tracer.recording.spawned_process import follow
from tensortrail.tracer.trail.kept_runs import keep_out_of_git
from tensortrail.tracer.trail.run_files import DEFAULT_DIRECTORY
from tensortrail.version import __version__


class AlreadyRecording(RuntimeError):
    pass


def begin(
    directory: str | os.PathLike[str] | None = None,
    options: Options | None = None,
    argv: list[str] | None = None,
    run: str = "",
    worker: str = "",
) -> Session:
    """Start recording in this process. Raises OSError if the directory cannot be written.

    Processes that give the same name for `run` record one run, as `worker`s of it."""
    if (already := running()) is not None:
        raise AlreadyRecording(f"this process is recorded already, in {already.directory}")
    run = run or run_name()
    chosen = os.path.abspath(directory or os.path.join(DEFAULT_DIRECTORY, run))
    Path(chosen).mkdir(parents=True, exist_ok=True)
    if Path(DEFAULT_DIRECTORY).absolute() in Path(chosen).parents:
        keep_out_of_git(Path(DEFAULT_DIRECTORY))
    options = options or Options()
    devices = options.rehearse.text if options.rehearse is not None else ""
    session = Session(
        chosen, {**_header(run, argv), "worker": worker, "rehearse": devices}, options
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
