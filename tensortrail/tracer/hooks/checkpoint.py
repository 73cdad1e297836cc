"""Distributed checkpoints: save, asynchronous save with its staging, load."""

from __future__ import annotations

from typing import Any

import torch

from tensortrail.rules.timeline import Did
from tensortrail.tracer.hooks.saving import note_loaded, note_saved, path_of, tensors_below
from tensortrail.tracer.patches import Around, Patches
from tensortrail.tracer.recorder import Recorder
from tensortrail.tracer.wrappers import class_name

LIBRARY = "torch.distributed.checkpoint"


def install(recorder: Recorder, patches: Patches) -> None:
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint import staging, state_dict_loader, state_dict_saver

    pending = Pending(recorder)
    for name, around in (("save", _saving), ("async_save", _saving_later)):
        made = around(recorder, pending)
        patches.wrap(state_dict_saver, name, made, everywhere=True)
    patches.wrap(state_dict_loader, "load", _loading(recorder), everywhere=True)
    for stager in ("BlockingAsyncStager", "DefaultStager"):
        if found := getattr(staging, stager, None):
            patches.wrap(found, "stage", _staging(recorder))
    recorder.at_close.append(pending.at_end)
    _ = dcp


class Pending:
    """Asynchronous saves whose result nobody waited for yet."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._open: list[tuple[Any, str, int]] = []
        recorder.at_fork.append(self._open.clear)

    def add(self, answer: Any, path: str) -> None:
        future = getattr(answer, "upload_completion", answer)
        if callable(getattr(future, "done", None)):
            self._open.append((future, path, self._recorder.site_here()))

    def before(self, what: str, where: str) -> None:
        """`what` comes next and will write there: tell of those that are not done."""
        recorder = self._recorder
        still = [each for each in self._open if not each[0].done()]
        for _, path, _ in still:
            recorder.note(
                Did.PENDING, op=what, facts={"next": what, "path": path, "next_path": where}
            )
        if still:
            self._open.clear()

    def at_end(self) -> None:
        recorder = self._recorder
        for future, path, site in self._open:
            if not future.done():
                facts = {"next": "the end of the recording", "path": path}
                recorder.note_at(site, Did.PENDING, op="exit", facts=facts)
        self._open.clear()


def _saving(recorder: Recorder, pending: Pending) -> Around:
    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        if not recorder.active:
            return original(*args, **kwargs)
        with recorder.phase("checkpoint"):
            recorder.guarded(_saves, args, kwargs, "dcp.save")
            return original(*args, **kwargs)

    return around


def _saving_later(recorder: Recorder, pending: Pending) -> Around:
    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        if not recorder.active:
            return original(*args, **kwargs)
        path = path_of(kwargs.get("checkpoint_id"))
        recorder.guarded(lambda _: pending.before("dcp.async_save", path))
        with recorder.phase("checkpoint"):
            recorder.guarded(_saves, args, kwargs, "dcp.async_save")
            answer = original(*args, **kwargs)
        recorder.guarded(lambda _: pending.add(answer, path))
        return answer

    return around


def _saves(recorder: Recorder, args: Any, kwargs: Any, op: str) -> None:
    data = args[0] if args else kwargs.get("state_dict")
    note_saved(recorder, data, kwargs.get("checkpoint_id"), op)


def _loading(recorder: Recorder) -> Around:
    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        if not recorder.active:
            return original(*args, **kwargs)
        with recorder.phase("load"):
            result = original(*args, **kwargs)
            data = args[0] if args else kwargs.get("state_dict")
            recorder.guarded(note_loaded, data, kwargs.get("checkpoint_id"), "dcp.load", False)
            return result

    return around


def _staging(recorder: Recorder) -> Around:
    def around(original: Any, stager: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        staged = original(stager, state_dict, *args, **kwargs)
        if recorder.active:
            done = getattr(staged, "add_done_callback", None)
            if done is None:
                recorder.guarded(_staged, state_dict, staged)
            else:
                site = recorder.site_here()
                sources = {key: _told(recorder, t) for key, t in tensors_below(state_dict)}
                done(lambda future: recorder.guarded(_staged_later, sources, future, site))
        return staged

    return around


def _told(recorder: Recorder, tensor: torch.Tensor) -> tuple[Any, str]:
    return recorder.storages.entry(tensor), class_name(type(tensor))


def _staged(recorder: Recorder, source: Any, staged: Any) -> None:
    sources = {key: _told(recorder, tensor) for key, tensor in tensors_below(source)}
    _compare(recorder, sources, staged, recorder.site_here())


def _staged_later(recorder: Recorder, sources: Any, future: Any, site: int) -> None:
    if not future.cancelled() and future.exception() is None:
        _compare(recorder, sources, future.result(), site)


def _compare(recorder: Recorder, sources: Any, staged: Any, site: int) -> None:
    for key, tensor in tensors_below(staged):
        old, kind = sources.get(key, (None, ""))
        new = recorder.storages.entry(tensor)
        if old is None or new is None:
            continue
        facts = {"key": key, "type": kind, "staged": class_name(type(tensor))}
        recorder.note_at(site, Did.STAGE, new, old, "dcp.async_save", facts)
