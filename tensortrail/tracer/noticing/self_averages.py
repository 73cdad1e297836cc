"""Averages that are written from the very memory they lie in: they have never been copies."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import FrameType
from typing import Any

from torch._C import DisableTorchFunction

from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.assigned_lines import assigned_at
from tensortrail.tracer.identity.assignments import assignment
from tensortrail.tracer.identity.inner_tensors import PLAIN
from tensortrail.tracer.identity.running_models import running_models
from tensortrail.tracer.identity.sites import OWNERS, USER, file_of, outwards
from tensortrail.tracer.identity.variables import variables
from tensortrail.tracer.noticing.notes import Notes

MOST_HELD, MOST_FRAMES, LOOKS = 5000, 40, 3


class SelfAverages:
    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._seen: dict[int, int] = {}

    def wrote(self, func: Any, target: Any) -> None:
        """The target was written from a tensor on its own memory."""
        site = self._notes.site_here()
        looks = self._seen[site] = self._seen.get(site, 0) + 1
        if looks > LOOKS or target.is_meta or not target.is_floating_point():
            return
        with DisableTorchFunction():
            weight = _weight_at(target)
            if weight is None:
                return
            self._seen[site] = LOOKS
            held = list(_kept_as(target))
        entry = self._notes.storages.entry(target)
        facts = {"average": weight, "kept": held[-1] if held else []}
        self._notes.note(Did.HOOK, entry, op=func, facts=facts)


def same_memory(args: tuple[Any, ...]) -> bool:
    """Two plain tensors that begin at one address."""
    if len(args) < 2 or type(args[0]) not in PLAIN or type(args[1]) not in PLAIN:
        return False
    with suppress(Exception):  # those of a transformation have none
        return bool(args[0].data_ptr() == args[1].data_ptr())
    return False


def _weight_at(target: Any) -> str | None:
    """The weight of a model at hand that lies there."""
    address = target.data_ptr()
    for name, model in running_models():
        for path, each in model.named_parameters(name):
            if type(each) in PLAIN and each.data_ptr() == address and each.shape == target.shape:
                return str(path)
    return None


def _kept_as(target: Any) -> Iterator[list[Any]]:
    """What keeps the tensor in the functions that run now, and where that was made: the innermost
    function first."""
    for frame in outwards(sys._getframe(1), MOST_FRAMES):
        if OWNERS[file_of(frame)] == USER:
            yield from _of_frame(frame, target)


def _of_frame(frame: FrameType, target: Any) -> Iterator[list[Any]]:
    own = variables(frame)
    for name, value in own.items():
        if _holds(value, target):
            made = assignment(frame, name, frame.f_lineno)
            if made is not None:
                yield [name, frame.f_code.co_filename, made.lineno]
    owner = own.get("self")
    for name, value in list(getattr(owner, "__dict__", {}).items()):
        if _holds(value, target) and (at := assigned_at(owner, name)) is not None:
            yield [f"self.{name}", *at]


def _holds(value: Any, target: Any) -> bool:
    """A plain dict or list with the tensor itself."""
    if isinstance(value, Mapping) and type(value).__module__ in ("builtins", "collections"):
        value = list(value.values())
    return type(value) in (list, tuple) and any(each is target for each in value[:MOST_HELD])
