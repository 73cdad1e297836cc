"""What a recorder is told of a rehearsal: where tensors lie, what was read or written too early."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.names_at_end import name_what_lives
from tensortrail.tracer.noticing.variable_names import variable_of
from tensortrail.tracer.rehearsal.operations.simulation import Simulation
from tensortrail.tracer.rehearsal.streams.races import Listener
from tensortrail.tracer.rehearsal.streams.uses import Use

if TYPE_CHECKING:
    from tensortrail.tracer.events.recorder import Recorder


def tell(simulation: Simulation, recorder: Recorder) -> None:
    recorder.storages.locate = _places(simulation)
    simulation.memory.names = lambda: _names(recorder)
    simulation.refused = recorder.failures.saw
    simulation.races.listener = Listener(
        recorder.site_here, recorder.storages.entry, _raced(recorder), recorder.trouble
    )
    early = _read_early(recorder)
    simulation.pending.told = lambda *read: recorder.guarded(lambda _: early(*read))
    refilled = _refilled(recorder)
    simulation.pending.refilled = lambda *written: recorder.guarded(lambda _: refilled(*written))


def _places(simulation: Simulation) -> Callable[[Any], str]:
    index_of = simulation.memory.index_of
    known: dict[int | None, str] = {
        index: f"cuda:{index}" for index in range(simulation.spec.count)
    }

    def locate(storage: Any) -> str:
        return known.get(index_of(storage), "")

    return locate


def _names(recorder: Recorder) -> Callable[[Any], str]:
    recorder.guarded(name_what_lives)
    return lambda storage: getattr(recorder.storages.of_storage(storage), "name", "")


def _read_early(recorder: Recorder) -> Callable[[Any, Any, int], None]:
    def early(func: Any, tensor: Any, index: int) -> None:
        entry = recorder.storages.entry(tensor)
        if not recorder.often(Did.EARLY, func, 1):
            facts = {"device": f"cuda:{index}", "variable": variable_of(tensor)}
            recorder.note(Did.EARLY, entry, op=func, facts=facts)

    return early


def _refilled(recorder: Recorder) -> Callable[[Any, Any, int], None]:
    def refilled(func: Any, tensor: Any, index: int) -> None:
        entry = recorder.storages.entry(tensor)
        if not recorder.often(Did.EARLY, func, 2):
            facts = {"device": f"cuda:{index}", "writes": True, "variable": variable_of(tensor)}
            recorder.note(Did.EARLY, entry, op=func, facts=facts)

    return refilled


def _raced(recorder: Recorder) -> Callable[[Any, Sequence[Use]], None]:
    def raced(entry: Any, uses: Sequence[Use]) -> None:
        for use in uses:
            did = Did.RACE if use is uses[-1] else Did.USED
            facts = {"does": use.does, "stream": str(use.queue)}
            recorder.note_at(use.site, did, entry, op=recorder.op_text(use.op), facts=facts)

    return raced
