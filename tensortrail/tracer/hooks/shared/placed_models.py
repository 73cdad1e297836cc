"""The event that tells where a model was to lie and where it lies now."""

from __future__ import annotations

from typing import Any

from torch.nn import Module

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.noticing.model_placement import placement


def note_placement(recorder: Recorder, model: Module, declared: Any, chosen: Any, op: str) -> None:
    recorder.name_module(model)
    recorder.note(Did.HOOK, op=op, facts=placement(model, declared, chosen, recorder.onload_hooks))
