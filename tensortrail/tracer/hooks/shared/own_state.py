"""A state dict holds the tensors of its module: loaded into it again, it changes nothing."""

from __future__ import annotations

import weakref
from typing import Any

from torch.nn import Module

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.identity.sites import Place

OP = "Module.load_state_dict"
Taken = tuple["weakref.ref[Any]", "weakref.ref[Module]", "Place | None", int]


class OwnState:
    """The state dicts that are still there, with their modules and lines, and how many steps the
    optimizers had made."""

    def __init__(self) -> None:
        self._taken: dict[int, Taken] = {}

    def taken(self, recorder: Recorder, module: Module, state: Any) -> None:
        key = id(state)

        def gone(ref: Any) -> None:
            known = self._taken.get(key)
            if known is not None and known[0] is ref:
                del self._taken[key]

        if type(state).__weakrefoffset__:
            self._taken[key] = (
                weakref.ref(state, gone),
                weakref.ref(module),
                recorder.user_here(),
                recorder.optimizer_steps,
            )

    def loaded(self, recorder: Recorder, module: Any, state: Any) -> None:
        """Noted where optimizers have stepped since it was taken, and it holds no copies yet."""
        known = self._taken.get(id(state))
        if known is None or [id(ref()) for ref in known[:2]] != [id(state), id(module)]:
            return
        steps = recorder.optimizer_steps - known[3]
        entries = [
            (recorder.storages.entry(weight), recorder.storages.entry(state.get(name)))
            for name, weight in module.named_parameters()
        ]
        if steps and entries and all(own is not None and own is its for own, its in entries):
            facts = {
                "itself": list(known[2] or ()),
                "steps": steps,
                "module": type(module).__name__,
            }
            recorder.note(Did.HOOK, entries[0][0], op=OP, facts=facts)
