"""Workers of a DataLoader have a copy of the data set each: what they draw, and what of it they
give."""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch._C import DisableTorchFunction
from torch.utils.data import IterableDataset, IterDataPipe
from torch.utils.data._utils import collate, fetch, worker

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.identity.assigned_lines import assigned_at
from tensortrail.tracer.identity.content import content
from tensortrail.tracer.identity.object_attributes import attributes_of
from tensortrail.tracer.identity.sites import OWNERS, USER, function_name
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "torch"
LOOKS = 4
"""Batches of a worker after which neither they nor its own generators are looked at any more."""


class Workers:
    """What is known of the worker that this process is."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._asked = False
        self._batches = 0
        self._drawn: dict[str, str] = {}
        self._given: list[int] = []
        """The content of its first batches."""

    def asked(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        """It wants to know which worker it is; `collate` only asks whether it is one."""
        self._asked = self._asked or not _is_collating()
        return original(*args, **kwargs)

    def fetched(self, original: Any, fetcher: Any, *args: Any, **kwargs: Any) -> Any:
        if worker._worker_info is None:
            return original(fetcher, *args, **kwargs)
        if not self._batches:
            self._recorder.guarded(self._began, fetcher.dataset)
        try:
            batch = original(fetcher, *args, **kwargs)
        except StopIteration:
            self._recorder.guarded(self._ended, fetcher.dataset)
            raise
        self._batches += 1
        if self._drawn and self._batches <= LOOKS:
            self._recorder.guarded(self._drew, fetcher.dataset)
        if self._batches <= LOOKS and isinstance(fetcher.dataset, IterableDataset):
            self._recorder.guarded(self._gave, batch)
        return batch

    def _gave(self, _: Recorder, batch: Any) -> None:
        self._given.append(content(batch))

    def _began(self, _: Recorder, data: Any) -> None:
        self._drawn = dict(_generators(data))

    def _drew(self, recorder: Recorder, data: Any) -> None:
        """A generator of the data set's own is in another state than this worker began with."""
        for name, state in _generators(data):
            began = self._drawn.get(name, state)
            if state != began:
                facts = {"own generator": name, "began": began, "made": assigned_at(data, name)}
                self._tell(recorder, data, facts)
                self._drawn = {}
                return

    def _ended(self, recorder: Recorder, data: Any) -> None:
        whole = isinstance(data, IterableDataset) and not isinstance(data, IterDataPipe)
        code = getattr(getattr(type(data), "__iter__", None), "__code__", None)
        if not whole or self._asked or code is None or OWNERS[code.co_filename] != USER:
            return
        if any(self._given) and not _has_init():
            gives = [code.co_filename, code.co_firstlineno, function_name(code)]
            facts = {"whole stream": self._batches, "given": self._given, "gives": gives}
            self._tell(recorder, data, facts)

    def _tell(self, recorder: Recorder, data: Any, facts: dict[str, Any]) -> None:
        info = worker._worker_info
        said = {"data": type(data).__name__, "worker": info.id, "workers": info.num_workers}
        recorder.note(Did.HOOK, op="DataLoader", facts={**said, **facts})
        recorder.flush()


def install(recorder: Recorder, patches: Patches) -> None:
    workers = Workers(recorder)
    for kind in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
        patches.wrap(kind, "fetch", workers.fetched)
    for owner in (worker, torch.utils.data):
        patches.wrap(owner, "get_worker_info", workers.asked)


def _is_collating() -> bool:
    frame = sys._getframe(2).f_back  # behind the wrapper
    return frame is not None and frame.f_code.co_filename == collate.__file__


def _has_init() -> bool:
    """A function of the program's has told this worker who it is."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code is worker._worker_loop.__code__:
            return frame.f_locals.get("init_fn") is not None
    return False


def _generators(data: Any) -> Iterator[tuple[str, str]]:
    """Those that the data set keeps, with a digest of the state that they are in."""
    for name, each in attributes_of(data):
        state = _state(each)
        if state is not None:
            yield name, hashlib.sha1(state, usedforsecurity=False).hexdigest()


def _state(value: Any) -> bytes | None:
    if isinstance(value, torch.Generator) and value.device.type == "cpu":
        with DisableTorchFunction():
            return bytes(value.get_state().numpy().tobytes())
    if type(value) is random.Random:
        return repr(value.getstate()).encode()
    if type(value).__module__.startswith("numpy.random"):
        inner = getattr(value, "bit_generator", getattr(value, "_bit_generator", None))
        return repr(inner.state).encode() if inner is not None else None
    return None
