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
        self._told: set[Place | None] = set()

    def taken(self, recorder: Recorder, module: Module, state: Any) -> None:
        key = id(state)

        def gone(ref: Any) -> None:
            known = self._taken.get(key)
            if known is not None and known.state is ref:
                del self._taken[key]

        if type(state).__weakrefoffset__:
            self._kept(recorder, module, state)
            self._taken[key] = Taken(
                weakref.ref(state, gone),
                weakref.ref(module),
                recorder.user_here(),
                recorder.optimizer_steps,
                _file_of(recorder, module),
            )

    def _kept(self, recorder: Recorder, module: Module, state: Any) -> None:
        """Others of this module are still there, with its tensors, and were taken before steps that
        changed them. One of them may be about to be replaced by the new one."""
        line, steps = recorder.user_here(), recorder.optimizer_steps
        alike = [each for each in self._taken.values() if each.module() is module]
        kept = [each for each in alike if each.line == line and each.state() is not None]
        turns = {each.steps for each in kept if _is_live(recorder, each.state(), module)} - {steps}
        if len(turns) > 1 and line not in self._told:
            self._told.add(line)
            entry = recorder.storages.entry(next(module.parameters(), None))
            facts = {"kept": len(turns) + 1, "module": type(module).__name__}
            recorder.note(Did.HOOK, entry, op="Module.state_dict", facts=facts)

    def loaded(self, recorder: Recorder, module: Any, state: Any) -> None:
        """Noted where optimizers have stepped since it was taken, it holds no copies yet, and
        nothing was read into it from a file, as a distributed load does."""
        known = self._taken.get(id(state))
        if known is None or id(known.state()) != id(state) or id(known.module()) != id(module):
            return
        if _file_of(recorder, module) not in ("", known.file):
            return
        steps = recorder.optimizer_steps - known.steps
        if steps and _is_live(recorder, state, module):
            facts = {
                "itself": list(known.line or ()),
                "steps": steps,
                "module": type(module).__name__,
            }
            entry = recorder.storages.entry(next(module.parameters()))
            recorder.note(Did.HOOK, entry, op=OP, facts=facts)


def _is_live(recorder: Recorder, state: Any, module: Module) -> bool:
    """It holds the memory of the module's parameters, and no copies."""
    entries = [
        (recorder.storages.entry(weight), recorder.storages.entry(state.get(name)))
        for name, weight in module.named_parameters()
    ]
    return bool(entries) and all(own is not None and own is its for own, its in entries)


def _file_of(recorder: Recorder, module: Module) -> str:
    return recorder.loads.file_of(module.parameters()) if recorder.loads.files else ""
