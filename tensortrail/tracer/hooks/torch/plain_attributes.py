"""Tensors that are plain attributes of a module stay behind when it is moved."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator
from typing import Any

from torch.nn import Module

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.identity.assigned_lines import assigned_at
from tensortrail.tracer.identity.inner_tensors import PLAIN
from tensortrail.tracer.identity.module_tensors import parts
from tensortrail.tracer.identity.storages import Entry

MOST = 50
BY_METHOD = ("cuda", "cpu", "xpu")


def left_behind(
    recorder: Recorder, module: Module, left: Collection[str], kept: Collection[int]
) -> dict[str, Any]:
    """Plain attributes on the devices that the module left, but none that shares its memory, and
    the lines that assign them."""
    found: list[int] = []
    lines: list[tuple[str, int] | None] = []
    for path, entry, part in _plain(recorder, module) if left else ():
        if entry.device in left and entry.number not in kept and len(found) < MOST:
            owner = ".".join(filter(None, (recorder.models.of(module), path)))
            recorder.storages.name(entry, owner)
            found.append(entry.number)
            lines.append(assigned_at(part, path.rpartition(".")[2]))
    return {"companions": found, "assigned": lines} if found else {}


def plain_devices(recorder: Recorder, module: Module) -> set[str]:
    return {entry.device for _, entry, _ in _plain(recorder, module)}


def destination(move: Any) -> str:
    """Where `Module.to`, `cuda` or `cpu` sends tensors, by the function it gives to `_apply`;
    "" for any other function."""
    if getattr(move, "__module__", "") != Module.__module__:
        return ""
    kept = inspect.getclosurevars(move).nonlocals.get("device")
    if isinstance(kept, int):
        kept = f"cuda:{kept}"
    return str(kept) if kept else next((n for n in move.__code__.co_names if n in BY_METHOD), "")


def lies_on(device: str, wanted: str) -> bool:
    """`cuda:0` and `cuda:1` lie on `cuda`: which one was the current device is not asked."""
    return device == wanted or device.partition(":")[0] == wanted


def _plain(recorder: Recorder, module: Module) -> Iterator[tuple[str, Entry, Module]]:
    for path, each in parts(module):
        for key, value in vars(each).items():
            if type(value) in PLAIN:
                entry = recorder.storages.entry(value)
                if entry is not None:
                    yield f"{path}.{key}" if path else key, entry, each
