"""Tensors that are plain attributes of a module stay behind when it is moved."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from torch.nn import Module

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.identity.storages import PLAIN

MOST = 50


def left_behind(
    recorder: Recorder, module: Module, left: Collection[str], kept: Collection[int]
) -> dict[str, Any]:
    """Plain attributes on the devices that the module left, but none that shares its memory."""
    found: list[int] = []
    for path, each in module.named_modules():
        for key, value in vars(each).items():
            if type(value) in PLAIN and len(found) < MOST:
                entry = recorder.storages.entry(value)
                if entry is not None and entry.device in left and entry.number not in kept:
                    owner = ".".join(filter(None, (recorder.models.of(module), path)))
                    recorder.storages.name(entry, f"{owner}.{key}")
                    found.append(entry.number)
    return {"companions": found} if found else {}
