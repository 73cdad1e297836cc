"""One recording: begins, arms threads, follows forks, ends."""

from __future__ import annotations

import atexit
import os
import platform
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch

from tensortrail import __version__
from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.focus import Focus
from tensortrail.tracer.events.recorder import FORK, Recorder
from tensortrail.tracer.hooks import all_hooks
from tensortrail.tracer.identity.sites import LIBRARY, OWNERS
from tensortrail.tracer.noticing.names_at_end import name_what_lives
from tensortrail.tracer.patching.late_imports import LateHooks
from tensortrail.tracer.patching.patches import Patches
from tensortrail.tracer.recording.stop import Guard
from tensortrail.tracer.rehearsal.devices.spec import Spec, parse_spec
from tensortrail.tracer.trail.layout import SUFFIX
from tensortrail.tracer.trail.run_files import DEFAULT_DIRECTORY
from tensortrail.tracer.trail.writer import TrailWriter
from tensortrail.tracer.watching.arming import arm, disarm

LIMIT = 1 << 30
_running: Session | None = None
_follows_forks = False


class AlreadyRecording(RuntimeError):
    pass


def running() -> Session | None:
    return _running


class Session:
    """Use `tensortrail.trace()`; this is what it gives."""

    def __init__(
        self,
        directory: str,
        header: Mapping[str, Any],
        focus: Focus,
        limit: int,
        steps: range = range(0),
        rehearse: Spec | None = None,
        guard: bool = False,
    ) -> None:
        self.directory = directory
        self.header = dict(header)
        self.limit = limit
        self.recorder = Recorder(_new_writer(directory, self.header, limit), focus)
        self.recorder.steps = steps
        if guard:
            self.header["guard"] = True
            self.recorder.guard = Guard(self.recorder)
        self._rehearse = rehearse
        self._patches = Patches()
        self.recorder.at_fork.append(self._patches.forked)
        self._late = LateHooks()

    def start(self) -> None:
        global _running, _follows_forks
        _running = self
        if self._rehearse is not None:
            self._begin_rehearsal(self._rehearse)
        self._late.install()
        with self._patches.together():
            for hook in all_hooks():
                self._late.when_imported(hook.LIBRARY, self._installer(hook))
        if not _follows_forks:
            os.register_at_fork(after_in_child=_forked)
            _follows_forks = True
        atexit.register(self.recorder.close)
        arm(self.recorder)

    def stop(self) -> None:
        global _running
        if _running is not self:
            return
        _running = None
        self.recorder.guarded(name_what_lives)
        self._late.remove()
        disarm(self.recorder)
        self._patches.undo()
        self._end_rehearsal()
        self.recorder.close()
        atexit.unregister(self.recorder.close)

    def _begin_rehearsal(self, spec: Spec) -> None:
        from tensortrail.tracer.rehearsal.rehearsal import Rehearsal

        stage = Rehearsal(spec)
        stage.listen(self.recorder)
        stage.start()
        self.recorder.stage = stage
        self.header["rehearse"] = spec.text

    def _end_rehearsal(self) -> None:
        if self.recorder.stage is not None:
            self.recorder.stage.stop()
            self.recorder.stage = None
            self.header.pop("rehearse", None)

    @contextmanager
    def rehearsing(self, spec: Spec) -> Iterator[None]:
        """Devices are simulated for a while in this thread and those it starts."""
        disarm(self.recorder)
        try:
            self._begin_rehearsal(spec)
            arm(self.recorder)
            yield
        finally:
            disarm(self.recorder)
            self._end_rehearsal()
            arm(self.recorder)

    @contextmanager
    def guarding(self) -> Iterator[None]:
        """The program is stopped for a while before what destroys data."""
        self.recorder.guard = Guard(self.recorder)
        try:
            yield
        finally:
            self.recorder.guard = None

    @property
    def trouble(self) -> str:
        """What went wrong with the recording itself; the program did not notice."""
        writer = self.recorder.writer
        if writer.trouble:
            return f"the trail ends early: {writer.trouble}"
        return f"a defect of tensortrail's, please report it: {writer.fault}" * bool(writer.fault)

    def explained(self, error: BaseException, color: bool = False) -> str:
        """What an exception that leaves the program has to do with where its tensors are."""
        from tensortrail.tracer.explaining.explanation import explain
        from tensortrail.tracer.explaining.explanation_text import render
        from tensortrail.tracer.reading.timeline import open_run

        try:
            self.recorder.active = False
            name_what_lives(self.recorder)
            self.recorder.writer.flush()
            told = explain(error, self.recorder.failures, lambda: open_run(self.directory))
            return render(told, color) if told is not None else ""
        except Exception as fault:
            self.recorder.trouble(fault)
            return ""
        finally:
            self.recorder.active = True

    def child_header(self, name: str) -> dict[str, Any]:
        return {
            **self.header,
            "worker": name,
            "parent": os.getpid(),
            "limit": self.limit,
            "started_by": self.recorder.user_here(),
        }

    def _installer(self, hook: Any) -> Any:
        def install() -> None:
            try:
                hook.install(self.recorder, self._patches)
            except Exception as error:
                self.recorder.trouble(error)

        return install


def begin(
    directory: str | os.PathLike[str] | None = None,
    focus: Focus | None = None,
    limit: int = LIMIT,
    argv: list[str] | None = None,
    steps: range = range(0),
    rehearse: Spec | None = None,
    guard: bool = False,
) -> Session:
    """Start recording in this process. Raises OSError if the directory cannot be written."""
    if _running is not None:
        raise AlreadyRecording(f"this process is recorded already, in {_running.directory}")
    run = run_name()
    chosen = os.path.abspath(directory or os.path.join(DEFAULT_DIRECTORY, run))
    Path(chosen).mkdir(parents=True, exist_ok=True)
    session = Session(chosen, _header(run, argv), focus or Focus(), limit, steps, rehearse, guard)
    session.start()
    return session


def resume(directory: str, header: Mapping[str, Any], focus: Focus) -> Session | None:
    """In a spawned child: record into the parent's run."""
    with suppress(Exception):
        own = {**header, "pid": os.getpid()}
        spec = parse_spec(own["rehearse"]) if own.get("rehearse") else None
        guard = bool(own.get("guard"))
        session = Session(directory, own, focus, int(header["limit"]), rehearse=spec, guard=guard)
        OWNERS["<string>"] = LIBRARY  # what starts a spawned child is no line of the user's
        session.recorder.local.started_by = own.pop("started_by")
        session.start()
        session.recorder.note(Did.WORKER, op=f"process {header.get('worker')}")
        return session
    return None


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


def _new_writer(
    directory: str, header: Mapping[str, Any], limit: int, first_storage: int = 1
) -> TrailWriter:
    rank = header.get("rank")
    stem = f"{time.time_ns() // 1_000_000:x}-{os.getpid()}"
    name = f"{stem}{SUFFIX}" if rank is None else f"rank{rank}-{stem}{SUFFIX}"
    return TrailWriter(os.path.join(directory, name), header, limit, first_storage)


def _forked() -> None:
    session = _running
    if session is None or not session.recorder.active:
        return
    recorder = session.recorder
    old = recorder.writer
    first_storage = old.next_storage()
    session.header = {
        **session.header,
        "pid": os.getpid(),
        "parent": session.header.get("pid"),
        "worker": recorder.local.child,
        "first_storage": first_storage,
    }
    recorder.local.child = FORK
    try:
        writer = _new_writer(session.directory, session.header, session.limit, first_storage)
    except OSError:
        recorder.active = False
        return
    finally:
        old.abandon()
    recorder.forked(writer)
