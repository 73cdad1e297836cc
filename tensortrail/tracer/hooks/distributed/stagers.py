"""A stager makes the copies from which an asynchronous save is written."""

from __future__ import annotations

import importlib
from typing import Any

import torch

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.distributed.pending_saves import OP, Pending, Save
from tensortrail.tracer.hooks.shared.checkpoint_tensors import tensors_below
from tensortrail.tracer.identity.inner_tensors import PLAIN
from tensortrail.tracer.noticing.wrapper_classes import class_name
from tensortrail.tracer.patching.patches import Patches

KNOWN = ("BlockingAsyncStager", "DefaultStager")
EXCHANGING = "_ReplicationStager"
"""It gives back what another rank had."""


class Stagers:
    def __init__(self, recorder: Recorder, patches: Patches, pending: Pending) -> None:
        self._recorder = recorder
        self._patches = patches
        self._pending = pending
        staging = importlib.import_module("torch.distributed.checkpoint.staging")
        found = (getattr(staging, name, None) for name in (*KNOWN, EXCHANGING))
        self._watched = tuple(each for each in found if each is not None)
        for each in self._watched:
            if each.__name__ != EXCHANGING:
                patches.wrap(each, "stage", self._staging)

    def watch_own(self, stager: Any) -> None:
        """One that the program brings along."""
        kind = type(stager)
        if stager is not None and hasattr(kind, "stage") and not issubclass(kind, self._watched):
            self._watched += (kind,)
            self._patches.wrap(kind, "stage", self._staging)

    def _staging(self, original: Any, stager: Any, state_dict: Any, *args: Any, **kw: Any) -> Any:
        recorder, save = self._recorder, self._pending.current
        staged = original(stager, state_dict, *args, **kw)
        if recorder.active:
            site = recorder.site_here()
            sources = recorder.guarded(_told, state_dict) or {}
            done = getattr(staged, "add_done_callback", None)
            if done is None:
                recorder.guarded(self._compare, sources, staged, site, save)
            else:
                done(lambda future: recorder.guarded(self._later, sources, future, site, save))
        return staged

    def _later(
        self, recorder: Recorder, sources: Any, future: Any, site: int, save: Save | None
    ) -> None:
        if not future.cancelled() and future.exception() is None:
            self._compare(recorder, sources, future.result(), site, save)

    def _compare(
        self, recorder: Recorder, sources: Any, staged: Any, site: int, save: Save | None
    ) -> None:
        entries = []
        for key, tensor in tensors_below(staged):
            old, kind = sources.get(key, (None, ""))
            new = recorder.storages.entry(tensor)
            if old is None or new is None:
                continue
            entries.append(new)
            facts = {"key": key, "type": kind, "staged": _kind(tensor)}
            recorder.note_at(site, Did.STAGE, new, old, OP, facts)
        self._pending.staged(save, entries, site)


def _told(recorder: Recorder, state_dict: Any) -> dict[str, tuple[Any, str]]:
    found: dict[str, tuple[Any, str]] = {}
    for key, tensor in tensors_below(state_dict):
        if isinstance(tensor, torch.Tensor):
            found[key] = recorder.storages.entry(tensor), _kind(tensor)
    return found


def _kind(tensor: torch.Tensor) -> str:
    """Parameters and simulated tensors are staged as plain ones, and rightly."""
    return "torch.Tensor" if type(tensor) in PLAIN else class_name(type(tensor))
