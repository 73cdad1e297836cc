"""Calls that cut a tensor off its graph, or change what the backward pass may need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from tensortrail.tracer.identity.inner_tensors import PLAIN
from tensortrail.tracer.watching.watch import Args, Kwargs, Watch

if TYPE_CHECKING:
    from tensortrail.tracer.events.recorder import Recorder

LOOKED_AT = 8
"""Of the tensors in a list."""


class Cuts(Watch):
    """Operations whose result has no graph."""

    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        if has_graph(args[0]):
            recorder.cut_graphs.cut(func, args[0])


CUTS = Cuts()


def has_graph(tensor: Any) -> bool:
    return type(tensor) in PLAIN and tensor.requires_grad and not tensor.is_leaf


def with_graph(data: Any) -> Any:
    """The tensor that values are taken from, or one of those in a list."""
    several = data[:LOOKED_AT] if type(data) in (list, tuple) else (data,)
    return next((each for each in several if has_graph(each)), None)


class Averages(Watch):
    """Operations that bring one tensor nearer to another."""

    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        if func is not Tensor.add_ or "alpha" in kwargs:
            recorder.self_averages.wrote(func, args[0])


AVERAGES = Averages()


class InPlace(Watch):
    """Operations that change a tensor which the backward pass may need as it was."""

    looks_before = True

    def before(self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs) -> Any:
        recorder.meta_writes.wrote(args[0])
        if has_graph(args[0]):
            recorder.refused_backward.changing(func, args[0])


IN_PLACE = InPlace()


class Freezes(Watch):
    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        tensor = args[0]
        if type(tensor) in PLAIN and tensor.is_leaf and not tensor.requires_grad:
            recorder.cut_graphs.froze(tensor)


class Switches(Watch):
    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        recorder.cut_graphs.switched(bool(args[0]))


SWITCHES = Switches()
