"""Two optimizers of the very same parameters, while another model gets gradients and has none."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from torch._C import DisableTorchFunction
from torch.nn import Module
from torch.optim import Optimizer

from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.running_models import running_models
from tensortrail.tracer.identity.sites import Place
from tensortrail.tracer.noticing.notes import Notes

Held = Callable[[], set[int]]
MOST = 64
LOOKS = 3


class TwinOptimizers:
    def __init__(self, notes: Notes, held: Held) -> None:
        self._notes, self._held = notes, held
        self._known: dict[int, tuple[weakref.ref[Optimizer], Place | None, set[int]]] = {}
        self._looks: dict[int, int] = {}
        self._early: set[int] = set()
        """Those that made a step before the other model had gradients."""
        self._told = False

    def stepped(self, optimizer: Optimizer, made: Place | None) -> None:
        key = id(optimizer)
        looks = self._looks[key] = self._looks.get(key, 0) + 1
        if looks > LOOKS or len(self._known) > MOST or self._told:
            return
        ids = {id(each) for group in optimizer.param_groups for each in group["params"]}
        self._known[key] = weakref.ref(optimizer), made, ids
        twins = [
            (other, place)
            for other, (ref, place, its) in self._known.items()
            if other != key and its == ids and ref() is not None
        ]
        with DisableTorchFunction():
            alone = self._without_optimizer()
        if alone is None:
            self._early.add(key)
        elif twins:
            self._tell(optimizer, made, twins, alone, ids)

    def _without_optimizer(self) -> tuple[str, Module] | None:
        """A model at hand all of whose weights have gradients, and no optimizer."""
        held = self._held()
        for name, model in running_models():
            weights = [each for each in model.parameters() if each.requires_grad]
            if weights and all(each.grad is not None and id(each) not in held for each in weights):
                return name, model
        return None

    def _tell(
        self,
        optimizer: Optimizer,
        made: Place | None,
        twins: list[tuple[int, Place | None]],
        alone: tuple[str, Module],
        ids: set[int],
    ) -> None:
        self._told = True
        known = next(iter(alone[1].parameters()))
        facts: dict[str, Any] = {
            "twins": type(optimizer).__name__,
            "made": list(made or ()),
            "other": list(twins[0][1] or ()),
            "certain": twins[0][0] in self._early and id(optimizer) not in self._early,
            "alone": alone[0],
            "models": [
                name for name, each in running_models() if ids == {id(w) for w in each.parameters()}
            ][:1],
        }
        op = f"{type(optimizer).__name__}.step"
        self._notes.note(Did.HOOK, self._notes.storages.entry(known), op=op, facts=facts)
