"""The recording that is on in this process: it arms threads, follows forks and ends."""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tensortrail.rules.timeline import Did
from tensortrail.tracer.audit.audit import AT_THE_END, Audit
from tensortrail.tracer.events.focus import Focus
from tensortrail.tracer.events.names_at_end import name_what_lives
from tensortrail.tracer.events.of_thread import FORK
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks import all_hooks
from tensortrail.tracer.noticing.last_writers import LastWriters
from tensortrail.tracer.noticing.written_checkpoints import Judge, WrittenCheckpoints
from tensortrail.tracer.patching.late_imports import LateHooks
from tensortrail.tracer.patching.patches import Patches
from tensortrail.tracer.recording.libraries import loaded_versions
from tensortrail.tracer.recording.stop import Stop
from tensortrail.tracer.rehearsal.devices.spec import Spec
from tensortrail.tracer.trail.layout import SUFFIX
from tensortrail.tracer.trail.writer import TrailWriter
from tensortrail.tracer.watching.arming import arm, disarm

if TYPE_CHECKING:
    from tensortrail.findings import Finding
    from tensortrail.tracer.explaining.explanation import Explanation
    from tensortrail.tracer.reading.timeline import RunTimeline

AUDITED = {("load", False): "after the load", ("checkpoint", True): "before the save"}
_running: Session | None = None
_follows_forks = False


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
        verify: Judge | None = None,
        audit: bool = False,
    ) -> None:
        self.directory = directory
        self.header = dict(header)
        self.limit = limit
        self.recorder = Recorder(_new_writer(directory, self.header, limit), focus)
        self.recorder.steps = steps
        self.recorder.joined = self._joined
        self.stop_early: Stop | None = None
        """What may stop the program before it destroys data."""
        if guard:
            self.header["guard"] = True
            self._may_stop()
        self.verify: Judge | None = None
        self.explained_by: Sequence[Finding] = ()
        """The findings that the last explanation told."""
        if verify is not None:
            self._verify(verify)
        self.audit = Audit(self.recorder, directory, self.header.get("rank"))
        if audit:
            self._audit()
        self._rehearse = rehearse
        self._patches = Patches(self.recorder)
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
        if self.recorder.last_writers is not None:
            self.recorder.guarded(lambda _: self.audit.snapshot(AT_THE_END))
        self.recorder.guarded(name_what_lives)
        self.recorder.writer.learn({"libraries": loaded_versions()})
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
        self._may_stop()
        try:
            yield
        finally:
            self.recorder.may_stop = self.stop_early = None

    @contextmanager
    def verifying(self, judge: Judge) -> Iterator[None]:
        """What the program writes is judged for a while."""
        self._verify(judge)
        try:
            yield
        finally:
            self.recorder.written = self.verify = None

    def _audit(self) -> None:
        self.recorder.last_writers = LastWriters()
        self.recorder.phases.changed = self._phase_changed
        self.recorder.changed()

    def _phase_changed(self, name: str, began: bool) -> None:
        """Weights are looked at after each load and before each save."""
        if not self.recorder.active or (name, began) not in AUDITED:
            return
        place = self.recorder.user_here()
        where = f" at {os.path.basename(place[0])}:{place[1]}" if place is not None else ""
        self.audit.by_itself(f"{AUDITED[name, began]}{where}")

    def _verify(self, judge: Judge) -> None:
        self.recorder.written = WrittenCheckpoints(self.recorder, judge)
        self.verify = judge

    def _may_stop(self) -> None:
        self.recorder.may_stop = self.stop_early = Stop(self.recorder)

    @property
    def trouble(self) -> str:
        """What went wrong with the recording itself; the program did not notice."""
        writer = self.recorder.writer
        if writer.trouble:
            return f"the trail ends early: {writer.trouble}"
        return f"a defect of tensortrail's, please report it: {writer.fault}" * bool(writer.fault)

    def explained(self, error: BaseException, phase: str = "", color: bool = False) -> str:
        """What an exception that leaves the program, or the phase, has to do with where its tensors
        are."""
        from tensortrail.tracer.explaining.causes import chain
        from tensortrail.tracer.explaining.explanation import explain

        self.recorder.guarded(lambda of: of.failures.escaped(error))
        failures = self.recorder.failures
        errors = list(chain(error))
        return self._told(lambda: explain(error, failures, self._opened, phase), color, errors)

    def ended_by(self, outcome: str) -> None:
        """What ended the program, for the list of runs."""
        self.recorder.writer.outcome = outcome

    def failed(self, test: str) -> None:
        """An exception has left the test that runs."""
        self.recorder.guarded(lambda of: of.note(Did.PHASE, facts={"failed": test}))

    def found_in(self, phase: str) -> str:
        """What the rules find in the phase of that name that runs now; empty if nothing."""
        from tensortrail.tracer.explaining.findings_in_phase import explain_phase

        return self._told(lambda: explain_phase(phase, self._opened()), False)

    def name_what_lives(self) -> None:
        """Weights get the names that they would have if the run ended now."""
        self.recorder.guarded(name_what_lives)

    def _opened(self) -> RunTimeline:
        from tensortrail.tracer.reading.timeline import open_run

        return open_run(self.directory)

    def _told(
        self,
        explain: Callable[[], Explanation | None],
        color: bool,
        errors: Sequence[BaseException] = (),
    ) -> str:
        """The explanation as text. What it does is not recorded."""
        from tensortrail.tracer.explaining.explanation_text import render

        try:
            self.recorder.active = False
            name_what_lives(self.recorder, errors)
            self.recorder.writer.flush()
            told = explain()
            self.explained_by = told.findings if told is not None else ()
            return render(told, color, self.header.get("rank")) if told is not None else ""
        except Exception as fault:
            self.recorder.trouble(fault)
            return ""
        finally:
            self.recorder.active = True

    def _joined(self, rank: int) -> None:
        if self.header.get("rank") is None:
            self.header["rank"] = rank
            self.recorder.writer.learn({"rank": rank})

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
    first_storage = next(old.storage_numbers)  # after all that were given
    session.header = {
        **session.header,
        "pid": os.getpid(),
        "parent": session.header.get("pid"),
        "worker": recorder.of_thread.child,
        "first_storage": first_storage,
    }
    recorder.of_thread.child = FORK
    try:
        writer = _new_writer(session.directory, session.header, session.limit, first_storage)
    except OSError:
        recorder.active = False
        return
    finally:
        old.abandon()
    recorder.forked(writer)
