"""A scheduler that goes on for an optimizer that another one has taken the place of."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary, WeakSet, ref

from torch.compiler import is_compiling
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.optimizer import register_optimizer_step_post_hook

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.looking import looking_after
from tensortrail.tracer.identity.sites import Place
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "torch"
IDLE = 2
"""Steps of the scheduler without one of its optimizer: a gradient scaler may leave one out."""


class OldSchedules:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._made: WeakKeyDictionary[Optimizer, Place | None] = WeakKeyDictionary()
        self._planned: WeakSet[Optimizer] = WeakSet()
        self._idle: WeakKeyDictionary[LRScheduler, int] = WeakKeyDictionary()
        self._stepped: WeakSet[Optimizer] = WeakSet()
        """Optimizers that have made a step at all."""
        self._last: ref[Optimizer] | None = None

    def made(self, recorder: Recorder, _: Any, optimizer: Optimizer, *__: Any, **___: Any) -> None:
        self._made[optimizer] = recorder.user_here()

    def planned(self, _: Recorder, __: Any, scheduler: LRScheduler, *___: Any, **____: Any) -> None:
        self._planned.add(scheduler.optimizer)

    def trains(self, optimizer: Optimizer, _: Any, __: Any) -> None:
        if self._planned and self._recorder.active and not is_compiling():
            self._recorder.guarded(self._trains, optimizer)

    def _trains(self, _: Recorder, optimizer: Optimizer) -> None:
        self._stepped.add(optimizer)
        self._last = ref(optimizer)
        for each in [each for each in self._idle if each.optimizer is optimizer]:
            self._idle[each] = 0

    def steps(
        self, recorder: Recorder, _: Any, scheduler: LRScheduler, *__: Any, **___: Any
    ) -> None:
        own, other = scheduler.optimizer, self._last() if self._last is not None else None
        if other is None or other is own or other in self._planned or own not in self._stepped:
            return
        idle = self._idle[scheduler] = self._idle.get(scheduler, 0) + 1
        if idle == IDLE and _weights(own) & _weights(other):
            facts = {
                "left behind": type(own).__name__,
                "other": type(other).__name__,
                "made": list(self._made.get(other) or ()),
            }
            recorder.note(Did.HOOK, op=type(scheduler).__name__, facts=facts)


def install(recorder: Recorder, patches: Patches) -> None:
    old = OldSchedules(recorder)
    patches.wrap(Optimizer, "__init__", looking_after(recorder, old.made))
    patches.wrap(LRScheduler, "__init__", looking_after(recorder, old.planned))
    patches.wrap(LRScheduler, "step", looking_after(recorder, old.steps))
    recorder.at_close.append(register_optimizer_step_post_hook(old.trains).remove)


def _weights(optimizer: Optimizer) -> set[int]:
    return {id(each) for group in optimizer.param_groups for each in group["params"]}
