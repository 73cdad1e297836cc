"""The operands of an operation that raised are kept for the explanation."""

from __future__ import annotations

import itertools
import re
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from traceback import walk_tb
from types import FrameType
from typing import Any

from tensortrail.rules.shared.calls import quoted
from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.errors_behind import with_those_behind
from tensortrail.tracer.identity.lines_behind import lies_on, lines_behind
from tensortrail.tracer.identity.model_names import ModelNames
from tensortrail.tracer.identity.sites import OWNERS, USER, Place, frames, function_name
from tensortrail.tracer.identity.storages import Storages
from tensortrail.tracer.identity.variables import variables
from tensortrail.tracer.noticing import model_operands, optimizer_operands
from tensortrail.tracer.noticing.argument_names import argument
from tensortrail.tracer.noticing.escaped import known_of
from tensortrail.tracer.noticing.escaped.left_alone import left_alone
from tensortrail.tracer.noticing.notes import Notes
from tensortrail.tracer.noticing.onload_hooks import OnloadHooks
from tensortrail.tracer.noticing.operands import MOST_OPERANDS, operand, tensors_in
from tensortrail.tracer.noticing.refused_graphs import refused_by_compiler

TOLD = (
    "device",
    "meta",
    "storage",
    "cuda",
    "memory",
    "pin",
    "dispatch",
    "type",
    "inference",
    "requires grad",
)
MOST_FAILURES = 1000
DEEPEST, MOST_HELD = 2, 64
"""Containers in containers that are looked into for a name, and how many items of each."""
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
    def __init__(self, notes: Notes, onloads: OnloadHooks, models: ModelNames) -> None:
        self._notes, self._onload_hooks, self._models = notes, onloads, models
        self.recent: deque[Failure] = deque(maxlen=32)
        self._count = 0
        self.known: Mapping[str, Any] = {}
        """What the frames of the exception that nothing handled tell."""

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
        found = list(tensors_in(args, kwargs))
        entries = [notes.storages.entry(tensor) for _, tensor in found]
        op = notes.op_text(func)
        operands = [
            operand(argument(op, where), tensor, entry)
            for (where, tensor), entry in zip(found, entries, strict=True)
        ]
        self._onload_hooks.explain(operands, entries)
        optimizer_operands.explain(operands, [tensor for _, tensor in found], notes.storages)
        if self._count < MOST_FAILURES:
            with suppress(Exception):
                model_operands.explain(
                    operands, [tensor for _, tensor in found], notes, self._models
                )
        for told, (_, tensor), entry in zip(operands, found, entries, strict=True):
            if not (entry is not None and entry.name) and (name := variable_of(tensor)):
                told["name"] = name
        identities = tuple(id(tensor) for _, tensor in found)
        self._count += 1
        self.recent.append(Failure(id(error), op, message, operands, identities, self._count))
        lower = message.lower()
        if self._count <= MOST_FAILURES and any(word in lower for word in TOLD):
            with suppress(Exception):  # what the frames hold may be of any kind
                _tell_lines_behind(operands, [tensor for _, tensor in found])
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

    def escaped(self, error: BaseException) -> None:
        """Nothing handled the exception, nor those behind it, whatever still happens while the
        stack unwinds."""
        seen = [*map(self.of, with_those_behind(error))]
        if not any(seen):
            with suppress(Exception):  # the insides of another version of the compiler
                self._look_up(error)
                seen = [self.of(error)]
        if known := [each.number for each in seen if each is not None]:
            self._notes.note(Did.PHASE, facts={"escaped": known})
        self.known = {}
        self.known = known_of(error, self.storages) or {}
        if left_alone(error):
            self.known = {**self.known, "left alone": True, "steps": self._notes.optimizer_steps}
        if facts := self.known:
            line = _last_line(error) or ("", 0, "")
            self._notes.note_at(
                self._notes.line(*line), Did.HOOK, op=type(error).__name__, facts=facts
            )

    def _look_up(self, error: BaseException) -> None:
        refused = refused_by_compiler(error)
        if refused is not None:
            self._saw(*refused, error, line_in_compiled(error) or _last_line(error))

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


_USER_CODE = re.compile(r'from user code:.*?\n\s+File "([^"\n]+)", line (\d+), in (\S+)', re.DOTALL)


def line_in_compiled(error: BaseException) -> Place | None:
    """The user's innermost line in the function that the compiler traced."""
    found = _USER_CODE.search(str(error))
    if found is None:
        return None
    frames = re.findall(r'File "([^"\n]+)", line (\d+), in (\S+)', str(error)[found.start() :])
    own = [each for each in frames if OWNERS[each[0]] == USER]
    file, line, function = own[-1] if own else frames[-1]
    return file, int(line), function


def _last_line(error: BaseException) -> Place | None:
    """The user's innermost line that the exception came through."""
    found: Place | None = None
    for frame, line in walk_tb(error.__traceback__):
        code = frame.f_code
        if OWNERS[code.co_filename] == USER:
            found = code.co_filename, line, function_name(code)
    return found


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


def variable_of(tensor: Any) -> str:
    """What the user's innermost frame calls the tensor; "" if it has no name there."""
    frame, _ = frames(sys._getframe(1))
    if frame is None:
        return ""
    own = variables(frame)
    for name in (*frame.f_code.co_varnames, *frame.f_code.co_freevars, *frame.f_code.co_names):
        if own.get(name) is tensor or frame.f_globals.get(name) is tensor:
            return name
    held = (_held_as(tensor, name, value, DEEPEST) for name, value in _containers(own))
    return next(filter(None, held), "")


def _containers(own: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The variables, and then what `self` keeps: `self.shadow`."""
    yield from own.items()
    with suppress(AttributeError):
        kept = object.__getattribute__(own.get("self"), "__dict__")
        yield from ((f"self.{name}", kept[name]) for name in list(kept) if name[:1] != "_")


def _held_as(tensor: Any, path: str, value: Any, depth: int) -> str:
    """`target["boxes"]`: the tensor in a plain container, which runs no code of the user's."""
    if value is tensor:
        return path
    if depth and type(value) in (dict, list, tuple):
        pairs = value.items() if type(value) is dict else enumerate(value)
        for key, each in itertools.islice(pairs, MOST_HELD):
            if type(key) in (str, int):
                name = f"{path}[{quoted(key) if type(key) is str else key}]"
                if found := _held_as(tensor, name, each, depth - 1):
                    return found
    return ""


def _was_seen(error: Exception) -> bool:
    """On its way out through an operation around the one that raised: ours is in its traceback
    below the entry that is being left."""
    step = error.__traceback__
    ours = step.tb_frame.f_code.co_filename if step is not None else ""
    while step is not None and (step := step.tb_next) is not None:
        if step.tb_frame.f_code.co_filename == ours:
            return True
    return False
