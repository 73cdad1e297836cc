"""Learning rates that an optimizer loaded, and a scheduler that sets them back when it is made."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

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


@dataclass
class Loaded:
    optimizer: weakref.ref[Optimizer]
    rates: list[float]
    line: Place | None
    set_back: list[float] | None = None
    scheduler: str = ""
    site: int = 0


class LearningRates:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._loaded: dict[int, Loaded] = {}

    def loaded(
        self, recorder: Recorder, _: Any, optimizer: Optimizer, *__: Any, **___: Any
    ) -> None:
        """Of a state that a scheduler had changed."""
        if all("initial_lr" in each for each in optimizer.param_groups):
            known = Loaded(weakref.ref(optimizer), _rates(optimizer), recorder.user_here())
            self._loaded[id(optimizer)] = known

    def making(self, original: Any, scheduler: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(scheduler, *args, **kwargs)
        if self._loaded:
            self._recorder.guarded(self._made, scheduler)
        return result

    def _made(self, recorder: Recorder, scheduler: LRScheduler) -> None:
        known = self._of(scheduler.optimizer)
        rates = _rates(scheduler.optimizer) if known else []
        if known is not None and rates != known.rates and rates == list(scheduler.base_lrs):
            known.set_back, known.scheduler = rates, type(scheduler).__name__
            known.site = recorder.site_here()

    def steps(self, optimizer: Optimizer, _: Any, __: Any) -> None:
        if self._loaded and self._recorder.active and not is_compiling():
            self._recorder.guarded(self._steps, optimizer)

    def _steps(self, recorder: Recorder, optimizer: Optimizer) -> None:
        """The first step with what was loaded."""
        known = self._of(optimizer)
        self._loaded.pop(id(optimizer), None)
        if known is not None and known.set_back == _rates(optimizer):
            facts = {
                "set back": known.set_back[0],
                "rate": known.rates[0],
                "optimizer": type(optimizer).__name__,
                "loaded": list(known.line or ()),
            }
            recorder.note_at(known.site, Did.HOOK, op=known.scheduler, facts=facts)

    def _of(self, optimizer: Optimizer) -> Loaded | None:
        known = self._loaded.get(id(optimizer))
        return known if known is not None and known.optimizer() is optimizer else None


def install(recorder: Recorder, patches: Patches) -> None:
    rates = LearningRates(recorder)
    patches.wrap(Optimizer, "load_state_dict", looking_after(recorder, rates.loaded))
    patches.wrap(LRScheduler, "__init__", rates.making)
    recorder.at_close.append(register_optimizer_step_post_hook(rates.steps).remove)


def _rates(optimizer: Optimizer) -> list[float]:
    return [each["lr"] for each in optimizer.param_groups if type(each["lr"]) is float]
