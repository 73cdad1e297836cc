"""The recording that is on in this process: what it consists of, how it starts and ends."""

from __future__ import annotations

import atexit
import multiprocessing
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tensortrail.rules.shared.ended_parts import ENDED_PROGRAM
from tensortrail.tracer.audit.audit import AT_THE_END, Audit
from tensortrail.tracer.events.names_at_end import name_what_lives
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks import all_hooks
from tensortrail.tracer.noticing.written_checkpoints import Judge, WrittenCheckpoints
from tensortrail.tracer.patching.late_imports import LateHooks
from tensortrail.tracer.patching.patches import Patches
from tensortrail.tracer.recording.explanations import Explanations
from tensortrail.tracer.recording.forked_process import follow_forks
from tensortrail.tracer.recording.libraries import loaded_versions
from tensortrail.tracer.recording.options import Options
from tensortrail.tracer.recording.stop import Stop
from tensortrail.tracer.rehearsal.devices.spec import Spec
from tensortrail.tracer.trail.headers import LEFT
from tensortrail.tracer.trail.writer import new_writer
from tensortrail.tracer.watching.arming import arm, disarm

_running: Session | None = None


def running() -> Session | None:
    return _running


class Session:
    """Use `tensortrail.trace()`; this is what it gives."""

    def __init__(self, directory: str, header: Mapping[str, Any], options: Options) -> None:
        self.directory = directory
        self.header = dict(header)
        self.limit = options.limit
        writer = new_writer(directory, self.header, self.limit)
        self.recorder = Recorder(writer, options.focus)
        self.recorder.steps = options.steps
        self.recorder.joined = self._joined
        self.stop_early: Stop | None = None
        """What may stop the program before it destroys data."""
        if options.guard:
            self.header["guard"] = True
            self._may_stop()
        self.verify: Judge | None = None
        if options.verify is not None:
            self._verify(options.verify)
        self.audit = Audit(self.recorder, directory, self.header.get("rank"))
        if options.audit:
            self.audit.begin()
        self.explanations = Explanations(self.recorder, directory, lambda: self.header.get("rank"))
        self.recorder.part_ended = self.explanations.part_ended
        self._rehearse = options.rehearse
        self._patches = Patches(self.recorder)
        self.recorder.at_fork.append(self._patches.forked)
        self._late = LateHooks()

    def start(self) -> None:
        global _running
        _running = self
        if self._rehearse is not None:
            self._begin_rehearsal(self._rehearse)
        self._late.install()
        with self._patches.together():
            for hook in all_hooks():
                self._late.when_imported(hook.LIBRARY, self._installer(hook))
        follow_forks(running)
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

    def ended_by(self, outcome: str, error: BaseException | None = None) -> None:
        """What ended the program, for the list of runs; an exception is noted at its line."""
        self.recorder.writer.outcome = outcome
        if outcome and error is not None:
            said = {"said": "ended the program", ENDED_PROGRAM: True}
            self.recorder.guarded(lambda of: of.failures.tell(error, said))

    def leaves_children(self) -> None:
        """The program is through: multiprocessing ends those of its children that are daemons."""
        left = [child.pid for child in multiprocessing.active_children() if child.daemon]
        if left:
            self.recorder.writer.learn({LEFT: left})

    def name_what_lives(self) -> None:
        """Weights get the names that they would have if the run ended now."""
        self.recorder.guarded(name_what_lives)

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
