"""The operands of an operation that raised are kept for the explanation."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from tensortrail.rules.shared.told_causes import CAUSE, CHANGE, WEIGHTS
from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.errors_behind import can_be_told, with_those_behind
from tensortrail.tracer.identity.lines_behind import lies_on, lines_behind
from tensortrail.tracer.identity.model_names import ModelNames
from tensortrail.tracer.identity.sites import Place
from tensortrail.tracer.identity.storages import Entry, Storages
from tensortrail.tracer.noticing import functional_calls, model_operands, optimizer_operands
from tensortrail.tracer.noticing.argument_names import argument
from tensortrail.tracer.noticing.escaped import known_of
from tensortrail.tracer.noticing.escaped.left_alone import left_alone
from tensortrail.tracer.noticing.lines_of_errors import innermost, last_line, line_in_compiled
from tensortrail.tracer.noticing.notes import Notes
from tensortrail.tracer.noticing.operands import MOST_OPERANDS, operand, tensors_in
from tensortrail.tracer.noticing.refused_graphs import refused_by_compiler
from tensortrail.tracer.noticing.variable_names import variable_of
from tensortrail.tracer.noticing.weights_not_brought import NotBrought

TOLD = (
    "device", "meta", "storage", "cuda", "memory", "pin", "dispatch", "type", "inference",
    "requires grad",
)  # fmt: skip
MOST_FAILURES = 1000
MOST_ROWS = 100
"""Lines that filled a device."""


@dataclass(frozen=True)
class Failure:
    """An exception that left an operation. Holds no tensor and no exception."""

    exception: int
    op: str
    message: str
    operands: list[dict[str, Any]] = field(default_factory=list)
    identities: tuple[int, ...] = ()
    """`id` of each operand: valid while the traceback keeps it alive."""
    number: int = 0
    """Of its event among those of exceptions."""


class Failures:
    def __init__(self, notes: Notes, not_brought: NotBrought, models: ModelNames) -> None:
        self._notes, self._not_brought, self._models = notes, not_brought, models
        self.recent: deque[Failure] = deque(maxlen=32)
        self._count = 0
        self._known: dict[int, Mapping[str, Any]] = {}
        """What the frames of exceptions that nothing handled tell, by the `id` of each."""

    @property
    def storages(self) -> Storages:
        return self._notes.storages

    def saw(
        self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], error: Exception
    ) -> None:
        """`func` raised. Must not raise, nor run code of the user's."""
        if not type(error).__module__.startswith(("builtins", "torch")):
            return
        with suppress(Exception):
            if not _was_seen(error):
                self._saw(func, args, kwargs, error, line_in_compiled(error))

    def _saw(
        self,
        func: Any,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        error: BaseException,
        line: Place | None,
    ) -> None:
        """`line` is that of the program, if another one runs now."""
        notes = self._notes
        message = " ".join(map(str, error.args))
        found = dict(tensors_in(args, kwargs))
        tensors = [*found.values()]
        entries = [notes.storages.entry(tensor) for tensor in tensors]
        op = notes.op_text(func)
        operands = self._described([argument(op, place) for place in found], tensors, entries)
        self._count += 1
        identities = tuple(map(id, tensors))
        self.recent.append(Failure(id(error), op, message, operands, identities, self._count))
        if self._count > MOST_FAILURES or not any(word in message.lower() for word in TOLD):
            return
        with suppress(Exception):  # what the frames hold may be of any kind
            _tell_lines_behind(operands, tensors)
        facts = {
            "type": type(error).__name__,
            "message": message[:2000],
            "operands": operands[:MOST_OPERANDS],
            "number": self._count,
        }
        if filled := vars(error).get("filled"):
            facts["filled"] = filled[:MOST_ROWS]
        odd = next((entry for entry in entries if entry is not None), None)
        if line is None:
            notes.note(Did.ERROR, odd, op=func, facts=facts)
        else:
            notes.note_at(notes.line(*line), Did.ERROR, odd, op=op, facts=facts)
        notes.flush()

    def _described(
        self, arguments: Sequence[str], tensors: Sequence[Any], entries: Sequence[Entry | None]
    ) -> list[dict[str, Any]]:
        """What is told of each operand: its place, and all that the recording knows of it."""
        notes = self._notes
        operands = [*map(operand, arguments, tensors, entries)]
        self._not_brought.explain(operands, entries)
        optimizer_operands.explain(operands, tensors, notes.storages)
        if self._count < MOST_FAILURES:
            with suppress(Exception):
                model_operands.explain(operands, tensors, notes, self._models)
                functional_calls.explain(operands, tensors)
        for told, tensor, entry in zip(operands, tensors, entries, strict=True):
            if not (entry is not None and entry.name) and (name := variable_of(tensor)):
                told["name"] = name
        return operands

    def escaped(self, error: BaseException) -> None:
        """Nothing handled the exception, nor those behind it, whatever still happens while the
        stack unwinds."""
        seen = [*map(self.of, with_those_behind(error))]
        if not any(seen):
            with suppress(Exception):  # the insides of another version of the compiler
                self._look_up(error)
                seen = [self.of(error)]
        if numbers := [each.number for each in seen if each is not None]:
            self._notes.note(Did.PHASE, facts={"escaped": numbers})
        self._known[id(error)] = {}
        known = known_of(error, self.storages) or {}
        if left_alone(error):
            known = {**known, "left alone": True, "steps": self._notes.optimizer_steps}
            known["said"] = "ended the wait for another rank"
        self._known[id(error)] = known
        facts = {name: each for name, each in known.items() if name not in (CAUSE, CHANGE, WEIGHTS)}
        if facts:
            self.tell(error, facts)

    def ended_by(self, error: BaseException) -> None:
        """`escaped`, in a process that explains nothing: the explanation of its parent may."""
        if not can_be_told(error):
            return
        self.escaped(error)
        known = self.frames_tell(error)
        if CAUSE in known:
            self.tell(error, {name: known[name] for name in (CAUSE, CHANGE)})

    def frames_tell(self, error: BaseException) -> Mapping[str, Any]:
        """What the frames of an exception that has escaped tell."""
        return self._known.get(id(error), {})

    def tell(self, error: BaseException, facts: Mapping[str, Any]) -> None:
        """Note what is known of an exception, at the line that it came through last."""
        line = last_line(error) or innermost(error) or ("", 0, "")
        self._notes.note_at(self._notes.line(*line), Did.HOOK, op=type(error).__name__, facts=facts)

    def _look_up(self, error: BaseException) -> None:
        refused = refused_by_compiler(error)
        if refused is not None:
            self._saw(*refused, error, line_in_compiled(error) or last_line(error))

    def of(self, error: BaseException) -> Failure | None:
        """What was seen when this exception (alive now) was raised."""
        message = " ".join(map(str, error.args))
        return next(
            (
                each
                for each in reversed(self.recent)
                if each.exception == id(error) and each.message == message
            ),
            None,
        )


def _tell_lines_behind(operands: list[dict[str, Any]], tensors: Sequence[Any]) -> None:
    """Where those came from that lie on meta, or on the CPU beside others: their places were
    perhaps never chosen. Of several GPUs none is the wrong one."""
    devices = {told["device"] for told in operands}
    if len(devices) < 2 and devices != {"meta"}:
        return
    live = list(_live(sys._getframe(1)))[::-1]
    for told, tensor in zip(operands[:MOST_OPERANDS], tensors, strict=False):
        if told["device"] in ("cpu", "meta") or devices.isdisjoint(("cpu", "meta")):
            behind = lines_behind(live, id(tensor), lies_on(told["device"]))
            told["behind"] = [[each.file, each.line, each.source] for each in behind]


def _live(frame: FrameType | None) -> Iterator[tuple[FrameType, int]]:
    """The innermost first."""
    while frame is not None:
        yield frame, frame.f_lineno
        frame = frame.f_back


def _was_seen(error: Exception) -> bool:
    """On its way out through an operation around the one that raised: ours is in its traceback
    below the entry that is being left."""
    step = error.__traceback__
    ours = step.tb_frame.f_code.co_filename if step is not None else ""
    while step is not None and (step := step.tb_next) is not None:
        if step.tb_frame.f_code.co_filename == ours:
            return True
    return False
