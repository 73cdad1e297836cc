"""A state dict holds the tensors of its module: loaded into it again, it changes nothing."""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

from torch.nn import Module

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.identity.sites import Place

OP = "Module.load_state_dict"


class Taken(NamedTuple):
    state: weakref.ref[Any]
    module: weakref.ref[Module]
    line: Place | None
    steps: int
    """Of optimizers until then."""
    file: str
    """Where most of its values came from."""


class OwnState:
    """The state dicts that are still there."""

    def __init__(self) -> None:
        self._taken: dict[int, Taken] = {}

    def taken(self, recorder: Recorder, module: Module, state: Any) -> None:
        key = id(state)

        def gone(ref: Any) -> None:
            known = self._taken.get(key)
            if known is not None and known.state is ref:
                del self._taken[key]

        if type(state).__weakrefoffset__:
            self._taken[key] = Taken(
                weakref.ref(state, gone),
                weakref.ref(module),
                recorder.user_here(),
                recorder.optimizer_steps,
                _file_of(recorder, module),
            )

    def loaded(self, recorder: Recorder, module: Any, state: Any) -> None:
        """Noted where optimizers have stepped since it was taken, it holds no copies yet, and
        nothing was read into it from a file, as a distributed load does."""
        known = self._taken.get(id(state))
        if known is None or id(known.state()) != id(state) or id(known.module()) != id(module):
            return
        if _file_of(recorder, module) not in ("", known.file):
            return
        steps = recorder.optimizer_steps - known.steps
        entries = [
            (recorder.storages.entry(weight), recorder.storages.entry(state.get(name)))
            for name, weight in module.named_parameters()
        ]
        if steps and entries and all(own is not None and own is its for own, its in entries):
            facts = {
                "itself": list(known.line or ()),
                "steps": steps,
                "module": type(module).__name__,
            }
            recorder.note(Did.HOOK, entries[0][0], op=OP, facts=facts)


def _file_of(recorder: Recorder, module: Module) -> str:
    return recorder.loads.file_of(module.parameters()) if recorder.loads.files else ""
