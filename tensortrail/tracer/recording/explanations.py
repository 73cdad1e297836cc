"""What the recording that is on says of exceptions and tests while it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tensortrail.rules.shared.told_causes import facts_of
from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.names_at_end import name_what_lives

if TYPE_CHECKING:
    from tensortrail.findings import Finding
    from tensortrail.tracer.events.recorder import Recorder
    from tensortrail.tracer.explaining.explanation import Explanation
    from tensortrail.tracer.reading.timeline import RunTimeline


class Explanations:
    def __init__(self, recorder: Recorder, directory: str, rank: Callable[[], Any]) -> None:
        self._recorder, self._directory, self._rank = recorder, directory, rank
        self.findings: Sequence[Finding] = ()
        """Those that the last explanation told."""
        self._cause: dict[str, Any] = {}
        """What it told in their place."""
        self._failed = ""
        """The test that failed last."""

    def failed(self, test: str) -> None:
        """An exception has left the test that runs."""
        self._failed = test
        self._recorder.guarded(lambda of: of.note(Did.PHASE, facts={"failed": test}))

    def explained(
        self, error: BaseException, phase: str = "", color: bool = False, ends: bool = False
    ) -> str:
        """What an exception that leaves the program, or the phase, has to do with where its tensors
        are. If it `ends` the program or a test, the run keeps a cause that is no finding."""
        from tensortrail.tracer.explaining.causes import chain
        from tensortrail.tracer.explaining.explanation import explain
        from tensortrail.tracer.identity.errors_behind import can_be_told

        recorder = self._recorder
        if not can_be_told(error):
            return ""
        recorder.guarded(lambda of: of.failures.escaped(error))
        failures = recorder.failures
        errors = list(chain(error))
        told = self._told(lambda: explain(error, failures, self._opened, phase), color, errors)
        if self._cause and (ends or (phase and phase == self._failed)):
            facts, self._cause = self._cause, {}
            recorder.guarded(lambda of: of.failures.tell(error, facts))
        return told

    def found_in(self, phase: str) -> str:
        """What the rules find in the phase of that name that runs now; empty if nothing."""
        from tensortrail.tracer.explaining.findings_in_phase import explain_phase

        return self._told(lambda: explain_phase(phase, self._opened()), False)

    def _opened(self) -> RunTimeline:
        from tensortrail.tracer.reading.timeline import open_run

        return open_run(self._directory)

    def _told(
        self,
        explain: Callable[[], Explanation | None],
        color: bool,
        errors: Sequence[BaseException] = (),
    ) -> str:
        """The explanation as text. What it does is not recorded."""
        from tensortrail.tracer.explaining.explanation_text import render

        recorder = self._recorder
        try:
            recorder.active = False
            name_what_lives(recorder, errors)
            recorder.writer.flush()
            told = explain()
            self.findings = told.findings if told is not None else ()
            self._cause = _cause_of(told) if told is not None else {}
            return render(told, color, self._rank()) if told is not None else ""
        except Exception as fault:
            recorder.trouble(fault)
            return ""
        finally:
            recorder.active = True


def _cause_of(told: Explanation) -> dict[str, Any]:
    """For the run, where no finding of it says the same."""
    if told.findings or told.cause is None:
        return {}
    operands = sorted(told.operands, key=lambda each: not each.odd)
    placed = (each.placed.storage for each in operands if each.placed)
    about = next((each.number for each in placed if each), 0)
    return facts_of(told.cause.cause, told.cause.advice, told.settings, about)
