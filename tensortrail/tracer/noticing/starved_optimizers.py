"""Optimizers that make steps and never have a gradient, though backward passes run between."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from torch._C import DisableTorchFunction
from torch.optim import Optimizer

from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.running_models import running_models
from tensortrail.tracer.identity.sites import Place
from tensortrail.tracer.identity.storages import Entry
from tensortrail.tracer.noticing.cut_graphs import CutGraphs
from tensortrail.tracer.noticing.notes import Notes

FEWEST, LOOKS = 2, 4
"""Steps without a gradient that are told, and those at which is asked why."""


@dataclass
class Starved:
    optimizer: weakref.ref[Optimizer]
    turn: int
    """The backward passes that had ended at its last step."""
    steps: int = 0
    fed: bool = False
    site: int = 0
    entry: Entry | None = None
    facts: dict[str, Any] = field(default_factory=dict)


class StarvedOptimizers:
    def __init__(self, notes: Notes, graphs: CutGraphs) -> None:
        self._notes, self._graphs = notes, graphs
        self._known: dict[int, Starved] = {}
        self._cleared: tuple[int, Place | None] = (-1, None)

    def cleared(self, weights: Iterable[Any]) -> None:
        """Gradients are about to be taken away."""
        with DisableTorchFunction():
            if any(each.grad is not None for each in weights):
                self._cleared = self._graphs.turn, self._notes.user_here()

    def stepped(self, optimizer: Optimizer, made: Place | None) -> None:
        known = self._known.get(id(optimizer))
        if known is None or known.optimizer() is not optimizer:
            known = self._known[id(optimizer)] = Starved(weakref.ref(optimizer), 0)
        if known.fed:
            return
        weights = [each for group in optimizer.param_groups for each in group["params"]]
        with DisableTorchFunction():
            if any(each.grad is not None for each in weights):
                known.fed, known.facts = True, {}
            elif known.turn != self._graphs.turn:
                known.turn = self._graphs.turn
                known.steps += 1
                if known.steps <= LOOKS and weights:
                    self._look(known, optimizer, made, weights)

    def _look(
        self, known: Starved, optimizer: Optimizer, made: Place | None, weights: list[Any]
    ) -> None:
        ids = {id(each) for each in weights}
        turn, cleared = self._cleared
        frozen = not any(each.requires_grad for each in weights)
        known.entry, known.site = self._notes.storages.entry(weights[0]), self._notes.site_here()
        known.facts = {
            "starved": type(optimizer).__name__,
            "made": list(made or ()),
            "count": len(weights),
            "models": _models_of(ids),
            "cleared": list(cleared or ()) if turn == self._graphs.turn else [],
            "leaf": self._graphs.leaf,
            "cuts": self._graphs.cuts_off(ids),
            "frozen": dict(self._graphs.frozen_by(weights)) if frozen else {},
        }

    def at_end(self, explained: Collection[list[Any]]) -> None:
        """Of those made at these places more is known."""
        for each in self._known.values():
            if (
                not each.fed
                and each.steps >= FEWEST
                and each.facts.get("made", []) not in explained
            ):
                op = f"{each.facts['starved']}.step"
                facts = {**each.facts, "steps": each.steps}
                self._notes.note_at(each.site, Did.HOOK, each.entry, op=op, facts=facts)
        self._known.clear()


def _models_of(identities: set[int]) -> list[str]:
    """The models at hand whose weights these are, and no parts of others."""
    models = [
        (name, model)
        for name, model in running_models()
        if not identities.isdisjoint(map(id, model.parameters()))
    ]
    parts = {id(part) for _, each in models for part in each.modules() if part is not each}
    return [name for name, model in models if id(model) not in parts][:3]
