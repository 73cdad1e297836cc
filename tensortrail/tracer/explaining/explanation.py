"""An explanation tells why a program failed: the operands, who put them there, what mends it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from traceback import walk_tb
from typing import Any, NamedTuple

from torch.multiprocessing import ProcessRaisedException

from tensortrail.findings import Finding, Setting, Severity, Site
from tensortrail.rules.offload.out_of_memory import OutOfMemory
from tensortrail.rules.shared.refused_memory import Shortage, shortage
from tensortrail.rules.timeline import Did, Event, Timeline
from tensortrail.tracer.explaining.bytes_by_model import bytes_by_model
from tensortrail.tracer.explaining.causes import Cause, Match, match_chain, type_name_of
from tensortrail.tracer.explaining.compared_devices import compared
from tensortrail.tracer.explaining.failed_save import finding_of_save, saves
from tensortrail.tracer.explaining.first_meeting import first_meeting, first_operand
from tensortrail.tracer.explaining.fitting import fitting
from tensortrail.tracer.explaining.given_at_line import given
from tensortrail.tracer.explaining.names_in_traceback import Scene
from tensortrail.tracer.explaining.operand import Operand, compared_operand, operands_of
from tensortrail.tracer.explaining.other_sizes import cause_of_sizes, origins_by, refuses_sizes
from tensortrail.tracer.explaining.phase_traces import beginning
from tensortrail.tracer.explaining.settings_of_cause import settings_of
from tensortrail.tracer.explaining.standing_findings import standing_findings
from tensortrail.tracer.explaining.told_by_frames import told_by_frames, weights_told
from tensortrail.tracer.identity.lines_behind import is_tensor
from tensortrail.tracer.identity.sites import OWNERS, USER
from tensortrail.tracer.noticing.failed_operands import Failure, Failures
from tensortrail.tracer.reading.timeline import RunTimeline

MAY_BE_FOUND = (
    KeyError, RuntimeError, ValueError, TypeError, AttributeError, pickle.PickleError,
    ProcessRaisedException,
)  # fmt: skip
"""Exceptions that a finding of the run may explain, whatever their message."""


@dataclass(frozen=True)
class Explanation:
    error: str
    hidden: tuple[str, ...] = ()
    """The errors behind a message that stands before any of them."""
    op: str = ""
    at: Site | None = None
    raised: Event | None = None
    """The exception as it was recorded, with its thread."""
    operands: tuple[Operand, ...] = ()
    first: Operand | None = None
    """The operand that brought the trouble in, at an earlier operation."""
    met: Event | None = None
    """That operation."""
    cause: Cause | None = None
    findings: tuple[Finding, ...] = ()
    """What the rules find in this run about what failed: more than a known cause of a message."""
    settings: tuple[Setting, ...] = ()
    """Those that a known cause or a lack of memory asks for, where there is no finding."""
    needed: str = ""
    """The bytes that were missing, where memory was."""
    holders: tuple[str, ...] = ()
    """What lies there, by model."""
    filled: tuple[Mapping[str, Any], ...] = ()
    """What lies there, by kind and line, where every byte is known."""
    of_several: bool = False
    """It belongs to one error of a group."""
    alike: int = 0
    """More errors of the same group that this explains."""

    @property
    def same(self) -> object:
        """Two errors for which this is equal have one explanation."""
        found = tuple((each.code, each.site) for each in self.findings)
        return found or (self.at, self.cause, self.error)


def explain(
    error: BaseException,
    failures: Failures | None,
    opened: Callable[[], RunTimeline] | None,
    phase: str = "",
) -> Explanation | None:
    """None when the error has nothing to do with where tensors are. What happened before the phase
    began, another test for example, is not taken for its beginning."""
    known = _known_of(error, failures)
    timeline = opened() if opened and _may_be_of_tensors(known) else None
    told = told_by_frames(error, failures)
    weights = weights_told(error, failures)
    standing = _standing(known, timeline, phase, weights) if timeline else ()
    if told is not None:
        standing = tuple(each for each in standing if each.severity is Severity.ERROR)
    says = told or known.told or standing
    if not says and not (known.failure and _of_operands(known.failure)):
        return None if known.failure else _of_line(error, failures, opened)
    explained = _explained(known, standing, timeline, phase, told)
    return explained if _says_anything(explained) else None


class _Known(NamedTuple):
    """What is known of an error before the run is read."""

    error: BaseException
    chain: Sequence[tuple[BaseException, Match | None]]
    """The error and those behind it, with what the table of causes says of each."""
    told: Sequence[tuple[BaseException, Match]]
    telling: tuple[BaseException, Match] | None
    """The one of them whose cause says most."""
    failed: BaseException | None
    """The one that an operation raised."""
    failure: Failure | None
    """That operation, with its operands."""
    lack: Shortage | None
    """The memory that was missing."""

    @property
    def family(self) -> str:
        return self.telling[1].cause.family if self.telling else ""


def _known_of(error: BaseException, failures: Failures | None) -> _Known:
    chain = match_chain(error)
    told = [(link, found) for link, found in chain if found is not None]
    telling = _telling(told)
    failed, failure = _failed(chain, failures) or (None, None)
    of_memory = telling is not None and telling[1].cause.family == "memory"
    lack = shortage(str(telling[0])) if telling and of_memory else None
    return _Known(error, chain, told, telling, failed, failure, lack)


def _explained(
    known: _Known,
    standing: tuple[Finding, ...],
    timeline: RunTimeline | None,
    phase: str,
    told: Cause | None,
) -> Explanation:
    failure, lack = known.failure, known.lack
    link, match = known.telling or (known.error, None)
    scene = Scene(known.failed or link, known.error)
    since = beginning(phase, timeline) if phase and timeline else 0.0
    met = first_meeting(failure, timeline, since) if failure and timeline else None
    filled = tuple(vars(link).get("filled", ())) if lack else ()
    settings = () if standing else tuple(settings_of(match, timeline, failure, lack))
    origins = origins_by(failure.message) if failure and not _mixed(failure) else None
    operands = tuple(operands_of(failure, scene, timeline, origins)) if failure else ()
    cause = told or (fitting(match.cause) if match else None)
    if cause is None and failure and refuses_sizes(failure.message) and operands:
        cause = cause_of_sizes(failure.op, failure.message, operands)
    return Explanation(
        error=_line(known.error),
        hidden=tuple(_line(each) for each, _ in known.chain[1:]),
        op=failure.op if failure else "",
        at=scene.user_site(),
        raised=_raised(failure, timeline) if failure and timeline else None,
        operands=operands,
        first=first_operand(met, timeline),
        met=met,
        cause=cause,
        findings=standing,
        settings=settings,
        needed=str(lack) if lack and not standing else "",
        holders=bytes_by_model(timeline, lack.device) if timeline and lack and not filled else (),
        filled=filled,
    )


def _may_be_of_tensors(known: _Known) -> bool:
    error = known.error
    return bool(known.told or known.failure or saves(error) or _may_be_found(error))


def _may_be_found(error: BaseException) -> bool:
    """An assert of the program's own says what it means; a library's may be about its tensors."""
    if isinstance(error, AssertionError):
        files = [frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)]
        return bool(files) and OWNERS[files[-1]] != USER
    return isinstance(error, MAY_BE_FOUND)


def _says_anything(told: Explanation) -> bool:
    """A known cause may have nothing that fits this program."""
    parts = (told.hidden, told.op, told.operands, told.cause, told.findings, told.settings)
    return any(parts) or bool(told.needed or told.holders or told.filled)


def _of_line(
    error: BaseException, failures: Failures | None, opened: Callable[[], RunTimeline] | None
) -> Explanation | None:
    """Of the tensors in the program's line: an assert compares their devices, or a library's code
    refuses their sizes."""
    if failures is None or opened is None:
        return None
    scene = Scene(error)
    if (refused := given(error, scene.user_frame())) is not None:
        op, tensors, may = refused.called, refused.tensors, is_tensor
    else:
        asked = compared(error, scene.user_frame())
        op, tensors, may = "the comparison", [(name, x, x) for name, x in asked], None
    entries = [(*each, failures.storages.entry(each[1])) for each in tensors]
    if not entries:
        return None
    timeline = opened()
    operands = tuple(
        compared_operand(name, tensor, timeline.here(entry.number), timeline, scene, held, may)
        for name, tensor, held, entry in entries
        if entry is not None
    )
    cause = cause_of_sizes(op, str(error), operands) if refused is not None else None
    return Explanation(_line(error), op=op, at=scene.user_site(), operands=operands, cause=cause)


def _failed(
    chain: Sequence[tuple[BaseException, Match | None]], failures: Failures | None
) -> tuple[BaseException, Failure] | None:
    """The operation that raised, the innermost one if there are several."""
    for link, _ in reversed(chain):
        if failures is not None and (failure := failures.of(link)) is not None:
            return link, failure
    return None


def _standing(
    known: _Known, timeline: RunTimeline, phase: str, weights: Collection[str]
) -> tuple[Finding, ...]:
    """The findings of the run that speak of this failure."""
    if saved := finding_of_save(known.error, timeline):
        found: tuple[Finding, ...] = (saved,)
    else:
        found = standing_findings(
            known.error, known.failure, timeline, phase, known.family, weights
        )
    if known.lack is None:
        return found
    return tuple(each for each in found if each.code == OutOfMemory.code)


def _telling(told: Sequence[tuple[BaseException, Match]]) -> tuple[BaseException, Match] | None:
    """What lies behind a message that hides others says more than that message."""
    for link, found in told:
        if not found.cause.catch_all:
            return link, found
    return told[-1] if told else None


def _of_operands(failure: Failure) -> bool:
    """They lie on several devices, or do not fit together."""
    return _mixed(failure) or (bool(failure.operands) and refuses_sizes(failure.message))


def _mixed(failure: Failure) -> bool:
    devices = {each["device"] for each in failure.operands if each["shape"]}
    return len(devices) > 1 or "meta" in devices


def _line(error: BaseException) -> str:
    first = str(error).strip().partition("\n")[0]
    return f"{type_name_of(error)}: {first}" if first else type_name_of(error)


def _raised(failure: Failure, timeline: Timeline) -> Event | None:
    for event in reversed(timeline.events(Did.ERROR)):
        said = failure.message.startswith(str(event.facts.get("message")))
        if said and event.facts.get("number") == failure.number:
            return event
    return None
