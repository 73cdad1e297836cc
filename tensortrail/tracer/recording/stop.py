"""The program can be stopped before a step that is known to destroy data."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tensortrail.findings import Finding

if TYPE_CHECKING:
    from tensortrail.tracer.events.recorder import Recorder

OP = "tensortrail.guard"


class Stopped(BaseException):
    """Raised before a step that would destroy data.

    It is no Exception: programs that go on after any failure must not go on after this."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(_told(finding))
        self.finding = finding

    def __reduce__(self) -> tuple[Any, ...]:
        return Stopped, (self.finding,)


Stopped.__module__ = "tensortrail"
"""Where people import it from, and what a traceback calls it."""


class Stop:
    """Asks a rule about the event that was noted last, before what the event tells of happens."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.stopped = False
        """Whether it has stopped anything."""

    def ask(self, code: str, evidence: str = "") -> None:
        """Raise `Stopped` if the rule has a finding at the user's line, with that evidence."""
        finding = self._recorder.guarded(_objection, code, evidence)
        if finding is not None:
            self.stopped = True
            raise Stopped(finding)


def _objection(recorder: Recorder, code: str, evidence: str) -> Finding | None:
    from tensortrail.rules import all_rules
    from tensortrail.rules.timeline import Did
    from tensortrail.tracer.reading.findings_of_run import findings
    from tensortrail.tracer.reading.timeline import open_run

    recorder.writer.flush()
    timeline = open_run(os.path.dirname(recorder.writer.path))
    here = recorder.user_here()
    for finding in findings(timeline, [all_rules()[code]()]).findings:
        at = os.path.abspath(finding.site.file), finding.site.line
        if (here is None or at == here[:2]) and (not evidence or evidence in finding.evidence):
            facts = {"said": f"stopped the program ({code})", "stopped": code}
            recorder.note(Did.HOOK, op=OP, facts=facts)
            return finding
    return None


def _told(finding: Finding) -> str:
    changes = [
        f"{each.name}={each.value}{f' ({each.imports})' if each.imports else ''} in {each.place}: "
        f"{each.why}"
        for each in finding.settings
    ]
    changes += [fix.description for fix in finding.fixes]
    lines = [f"{finding.code} {finding.message}", "stopped before it happened"]
    lines.append(f"at      {finding.site.place}")
    lines += [f"{'or' if place else 'change':<7} {text}" for place, text in enumerate(changes)]
    return "\n  ".join(lines)
