"""Learning rates that an optimizer loaded, and a scheduler that sets them back when it is made."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from functools import partial
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
MOST_PLANS = 100
PLAIN = (int, float, str, bool)


@dataclass
class Loaded:
    optimizer: weakref.ref[Optimizer]
    rates: list[float]
    line: Place | None
    planned: bool
    """It had a scheduler before it loaded the state: a new one begins another round."""
    set_back: list[float] | None = None
    scheduler: str = ""
    site: int = 0


class LearningRates:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._loaded: dict[int, Loaded] = {}
        self._planned: weakref.WeakSet[Optimizer] = weakref.WeakSet()
        self._plans: list[object] = []
        """Of the schedulers of the run."""

    def loaded(
        self, recorder: Recorder, _: Any, optimizer: Optimizer, *__: Any, **___: Any
    ) -> None:
        """Of a state that a scheduler had changed."""
        if all("initial_lr" in each for each in optimizer.param_groups):
            line, planned = recorder.user_here(), optimizer in self._planned
            known = Loaded(weakref.ref(optimizer), _rates(optimizer), line, planned)
            self._loaded[id(optimizer)] = known

    def making(self, original: Any, scheduler: Any, *args: Any, **kwargs: Any) -> Any:
        self._recorder.guarded(self._begins, [*args, *kwargs.values()])
        result = original(scheduler, *args, **kwargs)
        self._recorder.guarded(self._made, scheduler)
        return result

    def _begins(self, _: Recorder, given: list[Any]) -> None:
        """A rate that was set since the load is one that the program chose."""
        for each in given:
            known = self._of(each) if isinstance(each, Optimizer) else None
            if known is not None and known.rates != _rates(each):
                del self._loaded[id(each)]

    def _made(self, recorder: Recorder, scheduler: LRScheduler) -> None:
        optimizer, plan = scheduler.optimizer, _plan(scheduler)
        known = self._of(optimizer)
        rates = _rates(optimizer) if known else []
        if known is not None and rates == list(scheduler.base_lrs) and self._goes_on(known, plan):
            known.set_back, known.scheduler = rates, type(scheduler).__name__
            known.site = recorder.site_here()
        self._planned.add(optimizer)
        self._plans = [*self._plans[-MOST_PLANS:], plan]

    def _goes_on(self, known: Loaded, plan: object) -> bool:
        """No new phase begins: of a plan with other numbers than those that the run had before."""
        return not known.planned and (not self._plans or plan in self._plans)

    def steps(self, optimizer: Optimizer, _: Any, __: Any) -> None:
        if self._loaded and self._recorder.active and not is_compiling():
            self._recorder.guarded(self._steps, optimizer)

    def _steps(self, recorder: Recorder, optimizer: Optimizer) -> None:
        """The first step with what was loaded."""
        known = self._of(optimizer)
        self._loaded.pop(id(optimizer), None)
        if known is not None and known.rates != known.set_back == _rates(optimizer):
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


def _plan(scheduler: LRScheduler) -> object:
    """What it was made to do; the same for one that is made so again."""
    own = vars(scheduler)
    numbers = {name: each for name, each in own.items() if type(each) in PLAIN}
    return type(scheduler), numbers, [*map(_drawn, own.get("lr_lambdas") or ())]


def _drawn(curve: Any) -> object:
    """The function of a `LambdaLR`, which is often a new one of the same code."""
    if isinstance(curve, partial):
        return _drawn(curve.func), curve.args, curve.keywords
    cells = getattr(curve, "__closure__", None) or ()
    kept = [each.cell_contents for each in cells]
    return getattr(curve, "__code__", curve), [each for each in kept if type(each) in PLAIN]


def _rates(optimizer: Optimizer) -> list[float]:
    return [each["lr"] for each in optimizer.param_groups if type(each["lr"]) is float]
