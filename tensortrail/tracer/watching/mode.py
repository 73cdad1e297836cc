"""The function mode sees every call of torch's Python API in a thread, and acts on few."""

from __future__ import annotations

import sys
from typing import Any

from torch.compiler import is_compiling
from torch.overrides import TorchFunctionMode

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.identity.inner_tensors import PLAIN
from tensortrail.tracer.noticing.meta_writes import is_weight_on_meta
from tensortrail.tracer.noticing.mixed_devices import Meeting
from tensortrail.tracer.noticing.self_averages import same_memory
from tensortrail.tracer.patching.patches import without_next_frame
from tensortrail.tracer.watching.graph_watches import AVERAGES, CUTS, IN_PLACE, SWITCHES, has_graph
from tensortrail.tracer.watching.memory_watches import GIVES_STORAGE
from tensortrail.tracer.watching.move_watches import MOVES
from tensortrail.tracer.watching.plain_moves import moved
from tensortrail.tracer.watching.value_watches import SHARES
from tensortrail.tracer.watching.watch import Watch
from tensortrail.tracer.watching.watched_functions import WATCHED


class TrailMode(TorchFunctionMode):  # type: ignore[misc]
    """One for each recorded thread."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        # First, so that the compiler finds nothing else to trace here.
        if is_compiling():
            return func(*args, **(kwargs or {}))
        recorder = self.recorder
        try:
            watch = WATCHED.get(func)
        except TypeError:  # a callable of the user's that cannot be hashed
            return func(*args, **(kwargs or {}))
        moves = watch is MOVES and recorder.short_ways and type(args[0]) in PLAIN
        if watch is not None and not moves:
            watch = _needed(watch, args)
        if moves or (
            watch is None and not (recorder.alert and recorder.suspects(func, args, kwargs))
        ):
            if recorder.dead and not moves:
                recorder.storages.bury()
            result = None
            try:
                result = func(*args, **kwargs) if kwargs else func(*args)
                if moves:
                    try:  # as `guarded` would, which takes longer to call
                        moved(recorder, func, args, kwargs or {}, result, sys._getframe(1))
                    except Exception as error:
                        recorder.trouble(error)
                return result
            except BaseException as error:
                if isinstance(error, Exception):
                    recorder.failures.saw(func, args, kwargs or {}, error)
                args = kwargs = result = None
                raise
        try:
            return self._watched(watch, func, args, kwargs or {})
        except BaseException as error:
            args = kwargs = None
            without_next_frame(error)
            raise

    def _watched(self, watch: Any, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        recorder = self.recorder
        if not recorder.active:
            return func(*args, **kwargs)
        meeting = recorder.look(func, args, kwargs, watch is not None) if recorder.alert else None
        before = None
        if watch and watch.looks_before:
            before = recorder.guarded(watch.before, func, args, kwargs)
        try:
            result = func(*args, **kwargs)
        except Exception as error:
            if meeting:
                recorder.guarded(_ended, func, meeting)
            recorder.failures.saw(func, args, kwargs, error)
            raise
        if meeting:
            recorder.guarded(_ended, func, meeting, result)
        if watch:
            recorder.guarded(watch.after, func, args, kwargs, before, result)
        return result


def _needed(watch: Watch, args: Any) -> Watch | None:
    """None where it would find nothing in these operands."""
    if watch is GIVES_STORAGE and type(args[0]) in PLAIN and not args[0].is_meta:
        return None  # it gives its own
    if (watch is SHARES or watch is CUTS) and args and type(args[0]) in PLAIN:
        return CUTS if args[0].requires_grad and not args[0].is_leaf else None
    if watch is SWITCHES and args and args[0] is True:
        return None
    if watch is IN_PLACE or (watch is AVERAGES and not same_memory(args)):
        return IN_PLACE if has_graph(args[0]) or is_weight_on_meta(args[0]) else None
    return watch


def _ended(recorder: Recorder, func: Any, meeting: Meeting, result: Any = None) -> None:
    recorder.mixed_devices.ended(func, meeting, result)
