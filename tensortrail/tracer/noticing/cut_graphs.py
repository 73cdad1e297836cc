"""Where the graph behind a loss ends: results without one, gradients switched off, weights frozen.

What cuts a graph is noted by its lines and not told: most of it is meant. Only when a backward pass
finds nothing to differentiate, or an optimizer gets no gradients, is it said."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from torch import is_grad_enabled
from torch._C import DisableTorchFunction
from torch.nn import Module
from torch.utils.weak import WeakTensorKeyDictionary

from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.call_stacks import (
    Key,
    Line,
    decorated,
    key_of,
    library_above,
    places,
    user_lines,
)
from tensortrail.tracer.identity.running_models import running_models
from tensortrail.tracer.identity.sites import Place
from tensortrail.tracer.noticing.notes import Notes

MOST_CUTS, MOST_NODES, MOST_FROZEN, MOST_TOLD = 400, 5000, 100_000, 20
NO_GRAPH = "does not require grad and does not have a grad_fn"


@dataclass
class Cut:
    """Behind these lines there is no graph."""

    op: str
    lines: tuple[Line, ...]
    turn: int
    """How many backward passes had ended."""
    leaves: Collection[int] = ()
    """The identities of the weights that it leaves without gradients."""
    by: Place | None = None
    """The library's function that does it."""
    decorated: Place | None = None
    """The function that runs without gradients as a whole."""

    def facts(self) -> dict[str, Any]:
        return {
            "op": self.op,
            "stack": [list(each) for each in places(self.lines)],
            "by": list(self.by or ()),
            "decorated": list(self.decorated or ()),
        }


class CutGraphs:
    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._cuts: dict[Key, Cut] = {}
        self._frozen: MutableMapping[Any, tuple[tuple[Line, ...], Place | None]] = (
            WeakTensorKeyDictionary()
        )
        self.turn = 0
        self.leaf = 0
        """What the last backward pass began at, if that was computed from nothing."""

    # --- what happens --------------------------------------------------------------------
    def cut(self, func: Any, tensor: Any) -> None:
        """A result of this function has no graph, though the tensor has one."""
        known = self._at(user_lines(sys._getframe(1)))
        if not known.op:
            known.op = self._notes.op_text(func)
            known.leaves = frozenset(_leaves(tensor))

    def switched(self, on: bool) -> None:
        """Gradients are asked for from here on, or no longer."""
        if on:
            return
        frame = sys._getframe(1)
        known = self._at(user_lines(frame))
        if not known.op:
            known.op = "gradients off"
            known.by, known.decorated = library_above(frame), decorated(frame)

    def froze(self, tensor: Any) -> None:
        if len(self._frozen) < MOST_FROZEN:
            frame = sys._getframe(1)
            self._frozen[tensor] = user_lines(frame), library_above(frame)

    def ran_backward(self, roots: Any) -> None:
        self.turn += 1
        root = roots[0] if isinstance(roots, (list, tuple)) and roots else roots
        known = self._notes.storages.known(root) if getattr(root, "is_leaf", False) else None
        self.leaf = known.number if known is not None else 0

    def _at(self, lines: tuple[Line, ...]) -> Cut:
        key = key_of(lines)
        known = self._cuts.get(key)
        if known is None:
            known = Cut("", lines, self.turn)
            if len(self._cuts) < MOST_CUTS:
                self._cuts[key] = known
        known.turn = self.turn
        return known

    # --- what is told --------------------------------------------------------------------
    def refused(self, tensors: Any, error: BaseException) -> None:
        """A backward pass found nothing to differentiate."""
        if NO_GRAPH not in str(error):
            return
        roots = tensors if isinstance(tensors, (list, tuple)) else (tensors,)
        first = next((each for each in roots if each.grad_fn is None and each.is_leaf), None)
        if first is None:
            return
        recent = [each for each in self._cuts.values() if each.turn == self.turn]
        facts = {
            "no graph": places(user_lines(sys._getframe(1))),
            "cuts": [each.facts() for each in recent[-MOST_TOLD:]],
            "frozen": list(self.frozen_models()),
            "on": is_grad_enabled(),
            "inference": first.is_inference(),
        }
        entry = self._notes.storages.entry(first)
        self._notes.note(Did.HOOK, entry, op="backward", facts=facts)

    def cuts_off(self, identities: Collection[int]) -> list[dict[str, Any]]:
        """What leaves these weights without gradients."""
        wanted = set(identities)
        found = (each for each in self._cuts.values() if not wanted.isdisjoint(each.leaves))
        return [each.facts() for each in found][-MOST_TOLD:]

    def frozen_models(self) -> Iterator[dict[str, Any]]:
        """The models at hand none of whose weights gets gradients; no parts of others."""
        with DisableTorchFunction():
            models = list(running_models())
            parts = {id(part) for _, each in models for part in each.modules() if part is not each}
            for name, model in models:
                weights = [] if id(model) in parts else list(model.parameters())
                if weights and not any(each.requires_grad for each in weights):
                    yield self._frozen_model(name, model, weights)

    def _frozen_model(self, name: str, model: Module, weights: list[Any]) -> dict[str, Any]:
        return {
            "model": name,
            "kind": type(model).__name__,
            "count": len(weights),
            "last": _last_part(model),
            **self.frozen_by(weights),
        }

    def frozen_by(self, weights: Collection[Any]) -> Mapping[str, Any]:
        """Where the last of them was frozen, if it was seen of all."""
        known = [self._frozen[each] for each in weights if each in self._frozen]
        lines, by = known[-1] if known and len(known) == len(weights) else ((), None)
        return {"stack": [list(each) for each in places(lines)], "by": list(by or ())}


def _last_part(model: Module) -> str:
    """The one that is trained where one is: the part behind all others."""
    parts = [name for name, each in model.named_children() if any(True for _ in each.parameters())]
    return parts[-1] if len(parts) > 1 and parts[-1].isidentifier() else ""


def _leaves(tensor: Any) -> Iterator[int]:
    """The identities of what the tensor was computed from, if it is not too much."""
    waiting, seen = [tensor.grad_fn], {None}
    while waiting and len(seen) < MOST_NODES:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if (leaf := getattr(node, "variable", None)) is not None:
            yield id(leaf)
        waiting += [each for each, _ in node.next_functions]
