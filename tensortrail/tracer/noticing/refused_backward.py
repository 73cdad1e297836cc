"""A backward pass that needs what is gone: a graph that was freed, or values that were changed."""

from __future__ import annotations

import re
import sys
import weakref
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.call_stacks import Key, Line, key_of, places, user_lines
from tensortrail.tracer.identity.running_models import running_models
from tensortrail.tracer.identity.sites import Place, function_name, user_frames
from tensortrail.tracer.identity.variables import variables
from tensortrail.tracer.noticing.notes import Notes

TWICE = "backward through the graph a second time"
CHANGED = re.compile(
    r"modified by an inplace operation: \[[\w.]+ \[([\d, ]*)\]\](?:, which is output \d+ of (\w+))?"
)
MOST_NODES, MOST_FRAMES, MOST_CHANGES, MOST_HELD = 5000, 4, 300, 50


class RefusedBackward:
    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._ran: Place | None = None
        self._changes: dict[Key, tuple[tuple[Line, ...], str, list[int], str]] = {}
        self._steps: dict[int, tuple[weakref.ref[Optimizer], Place | None]] = {}

    # --- what happens --------------------------------------------------------------------
    def ran(self) -> None:
        """A backward pass has ended."""
        self._ran = self._notes.user_here()
        self._changes.clear()
        self._steps.clear()

    def changing(self, func: Any, tensor: Any) -> None:
        """The operation is about to write the tensor in place."""
        if len(self._changes) < MOST_CHANGES:
            node = type(tensor.grad_fn).__name__
            lines = user_lines(sys._getframe(1))
            self._changes[key_of(lines)] = (
                lines,
                self._notes.op_text(func),
                list(tensor.shape),
                node,
            )

    def stepped(self, optimizer: Optimizer) -> None:
        self._steps[id(optimizer)] = weakref.ref(optimizer), self._notes.user_here()

    # --- what is told --------------------------------------------------------------------
    def refused(self, tensors: Any, error: BaseException) -> None:
        roots = list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]
        message = str(error)
        if TWICE in message:
            self._note(roots, self._twice(roots))
        elif found := CHANGED.search(message):
            shape = [int(each) for each in found[1].split(",") if each.strip()]
            self._note(roots, self._changed(shape, found[2] or ""))

    def _note(self, roots: list[Any], facts: dict[str, Any]) -> None:
        entry = self._notes.storages.entry(roots[0]) if roots else None
        self._notes.note(Did.HOOK, entry, op="backward", facts=facts)

    def _twice(self, roots: list[Any]) -> dict[str, Any]:
        nodes = _nodes(roots)
        frames = list(user_frames(sys._getframe(1)))[:MOST_FRAMES]
        return {
            "twice": [[*_place(each), _held(each, nodes, roots)] for each in frames],
            "ran": list(self._ran or ()),
        }

    def _changed(self, shape: list[int], node: str) -> dict[str, Any]:
        changes = [
            {"op": op, "stack": [list(each) for each in places(lines)]}
            for lines, op, its, made in self._changes.values()
            if its == shape and made.startswith(node)
        ]
        return {
            "changed": [list(each) for each in places(user_lines(sys._getframe(1)))],
            "by": changes[-3:],
            "steps": [] if changes else list(self._stepped(shape)),
        }

    def _stepped(self, shape: list[int]) -> Iterator[dict[str, Any]]:
        """Optimizers that have written weights of this shape, or of the transposed one."""
        for ref, place in self._steps.values():
            optimizer = ref()
            groups = optimizer.param_groups if optimizer is not None else ()
            for weight in (each for group in groups for each in group["params"]):
                if list(weight.shape) in (shape, shape[::-1]) and place:
                    kind = type(optimizer).__name__
                    yield {"optimizer": kind, "at": list(place), "weight": _name(weight)}
                    break


def _name(weight: Any) -> str:
    for name, model in running_models():
        for path, each in model.named_parameters(name):
            if each is weight:
                return str(path)
    return ""


def _nodes(roots: list[Any]) -> set[Any]:
    waiting = [each.grad_fn for each in roots]
    seen: set[Any] = set()
    while waiting and len(seen) < MOST_NODES:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting += [each for each, _ in node.next_functions]
    return seen


def _place(frame: FrameType) -> list[Any]:
    code = frame.f_code
    return [code.co_filename, frame.f_lineno, function_name(code)]


def _held(frame: FrameType, nodes: set[Any], roots: list[Any]) -> dict[str, list[Any]]:
    """What the variables hold that has a graph: how, whether the failing one needs it, and when
    it was made."""
    own = variables(frame)
    kept = getattr(own.get("self"), "__dict__", {})
    named = {**own, **{f"self.{name}": each for name, each in kept.items()}}
    found: dict[str, list[Any]] = {}
    for name, value in named.items():
        kind = "Tensor" if isinstance(value, Tensor) else type(value).__name__
        several = value if type(value) in (tuple, list) else (value,)
        if isinstance(value, Mapping) or name.startswith("_"):
            continue
        for each in several[:MOST_HELD]:
            if isinstance(each, Tensor) and each.grad_fn is not None:
                is_root = any(each is root for root in roots)
                order = each.grad_fn._sequence_nr()
                found[name] = [kind, each.grad_fn in nodes, is_root, order, each.dim()]
                break
    return found
