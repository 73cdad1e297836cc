"""A program that torch.export captured in training mode, and that is saved."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn import Module
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "torch.export"
MOST = 50


def install(recorder: Recorder, patches: Patches) -> None:
    captured: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()

    def exporting(original: Any, *args: Any, **kwargs: Any) -> Any:
        program = original(*args, **kwargs)
        model = args[0] if args else kwargs.get("mod")
        recorder.guarded(_captured, captured, program, model)
        return program

    def saving(original: Any, *args: Any, **kwargs: Any) -> Any:
        program = args[0] if args else kwargs.get("ep")
        recorder.guarded(_saves, captured, program)
        return original(*args, **kwargs)

    patches.wrap(torch.export, "export", exporting)
    patches.wrap(torch.export, "save", saving)


def _captured(recorder: Recorder, captured: Any, program: Any, model: Any) -> None:
    names = list(_acting(model)) if isinstance(model, Module) else []
    if names:
        captured[program] = {
            "captured in training": names[:MOST],
            "captured": list(recorder.user_here() or ()),
        }


def _saves(recorder: Recorder, captured: Any, program: Any) -> None:
    if (facts := captured.get(program)) is not None:
        recorder.note(Did.HOOK, op="torch.export.save", facts=facts)


def _acting(model: Module) -> Iterator[str]:
    """Layers that do in training mode what they do not do else."""
    for name, layer in model.named_modules():
        drops = isinstance(layer, _DropoutNd) and layer.p > 0
        counts = isinstance(layer, _BatchNorm) and layer.track_running_stats
        if layer.training and (drops or counts):
            yield name or type(layer).__name__
