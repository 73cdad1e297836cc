"""Distributed checkpoints are saved, staged for an asynchronous save, and loaded."""

from __future__ import annotations

import threading
from typing import Any

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.distributed.load_plans import Planned
from tensortrail.tracer.hooks.distributed.local_plans import planning
from tensortrail.tracer.hooks.distributed.pending_saves import OP, Pending
from tensortrail.tracer.hooks.distributed.stagers import Stagers
from tensortrail.tracer.hooks.shared.checkpoint_tensors import WITHIN, path_of, tensors_below
from tensortrail.tracer.hooks.torch.loads import note_loaded
from tensortrail.tracer.hooks.torch.saves import note_saved
from tensortrail.tracer.noticing.written_checkpoints import writing
from tensortrail.tracer.patching.patches import Around, Patches

LIBRARY = "torch.distributed.checkpoint"
_LACKS = "Missing key in checkpoint"


class Call(threading.local):
    """The save or load that the running thread is in."""

    op = ""
    path = ""
    planned: Planned | None = None


def install(recorder: Recorder, patches: Patches) -> None:
    from torch.distributed.checkpoint import (
        default_planner,
        filesystem,
        state_dict_loader,
        state_dict_saver,
    )

    pending, call = Pending(recorder), Call()
    stagers = Stagers(recorder, patches, pending)
    saving_later = _saving_later(recorder, call, pending, stagers)
    patches.wrap(state_dict_saver, "save", _saving(recorder, call), everywhere=True)
    patches.wrap(state_dict_saver, "async_save", saving_later, everywhere=True)
    patches.wrap(state_dict_loader, "load", _loading(recorder, call), everywhere=True)
    # Inside, where objects that have a state dict have given theirs.
    patches.wrap(state_dict_saver, "_stateful_to_state_dict", _gathering(recorder, call))
    patches.wrap(default_planner.DefaultLoadPlanner, "set_up_planner", _planning(recorder, call))
    for planner in (default_planner.DefaultSavePlanner, default_planner.DefaultLoadPlanner):
        patches.wrap(planner, "create_local_plan", planning(recorder))
    patches.wrap(filesystem, "_write_item", WITHIN.around)
    patches.wrap(filesystem.FileSystemReader, "read_data", WITHIN.around)
    patches.wrap(default_planner.DefaultSavePlanner, "transform_object", WITHIN.around)
    recorder.at_close.append(pending.at_end)


def _saving(recorder: Recorder, call: Call) -> Around:
    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        path = _place(kwargs)
        with recorder.phases.within("checkpoint"), writing(recorder, path, "dcp.save"):
            call.op, call.path = "dcp.save", path
            try:
                return original(*args, **kwargs)
            finally:
                call.op = ""

    return around


def _saving_later(recorder: Recorder, call: Call, pending: Pending, stagers: Stagers) -> Around:
    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        call.path = path = _place(kwargs)
        save = recorder.guarded(lambda _: pending.begin(path))
        recorder.guarded(lambda _: stagers.watch_own(kwargs.get("async_stager")))
        recorder.guarded(_begins, path)
        future = None
        try:
            with recorder.phases.within("checkpoint"):
                call.op = OP
                answer = original(*args, **kwargs)
            if save is not None:
                recorder.guarded(lambda _: pending.add(save, answer))
                future = save.future
        finally:
            call.op, pending.current = "", None
            recorder.guarded(_goes_on, path, future)
        return answer

    return around


def _begins(recorder: Recorder, path: str) -> None:
    if recorder.written is not None:
        recorder.written.begins(path, recorder.site_here())


def _goes_on(recorder: Recorder, path: str, future: Any) -> None:
    if recorder.written is not None:
        recorder.written.goes_on(path, future)


def _gathering(recorder: Recorder, call: Call) -> Around:
    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        made = original(*args, **kwargs)
        if call.op:
            recorder.guarded(note_saved, made, call.path, call.op)
        return made

    return around


def _loading(recorder: Recorder, call: Call) -> Around:
    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        with recorder.phases.within("load"):
            call.path, call.planned = _place(kwargs), Planned()
            try:
                result = original(*args, **kwargs)
                planned = call.planned
            except BaseException as error:  # CheckpointException is no Exception
                if _LACKS in str(error):
                    recorder.guarded(_refused, call.planned, call.path)
                raise
            finally:
                call.planned = None
            data = args[0] if args else kwargs.get("state_dict")
            recorder.guarded(_loaded, data, call.path, planned)
            return result

    return around


def _loaded(recorder: Recorder, data: Any, path: str, planned: Planned) -> None:
    note_loaded(recorder, planned.target or data, path, "dcp.load", False, planned.facts or None)
    planned.tell_missing(recorder, path)
    planned.tell_empty(recorder, path)
    recorder.unread_loads.loaded("dcp.load", dict(tensors_below(planned.target or data)), path)


def _refused(recorder: Recorder, planned: Planned, path: str) -> None:
    planned.tell_refused(recorder, path)


def _planning(recorder: Recorder, call: Call) -> Around:
    def around(original: Any, planner: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        planned = call.planned
        if planned is not None:
            recorder.guarded(planned.before, state_dict)
        result = original(planner, state_dict, *args, **kwargs)
        if planned is not None:
            recorder.guarded(planned.after, planner)
        return result

    return around


def _place(kwargs: Any) -> str:
    """The folder, however it was named."""
    names = ("storage_writer", "storage_reader")
    given = next((kwargs[name] for name in names if kwargs.get(name) is not None), None)
    return path_of(kwargs.get("checkpoint_id") or getattr(given, "path", None))
