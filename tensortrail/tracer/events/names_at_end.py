"""Storages that are alive at the end get names from the modules that own them."""

from __future__ import annotations

import gc
from collections.abc import Iterable

import torch

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.identity.storages import PLAIN

MOST_OBJECTS = 5_000_000


def name_what_lives(recorder: Recorder, errors: Iterable[BaseException] = ()) -> None:
    """Parameters and buffers get the path in their outermost module as their name, and so do the
    plain attributes that were met. Variables that hold models are looked for in the frames that
    these exceptions came through too."""
    if len(recorder.storages):
        recorder.models.look(errors)
        for root in outermost_modules():
            recorder.name_module(root)
            _name_attributes(recorder, root)


def _name_attributes(recorder: Recorder, root: torch.nn.Module) -> None:
    for path, module in root.named_modules():
        for key, value in vars(module).items():
            if type(value) in PLAIN and (entry := recorder.storages.known(value)) and entry.name:
                name = ".".join(filter(None, (recorder.models.of(root), path, key)))
                recorder.storages.name(entry, name)


def outermost_modules() -> list[torch.nn.Module]:
    kinds = _kinds_of_modules()
    # By type: `isinstance` would ask proxies what they pretend to be.
    found = [each for each in gc.get_objects()[:MOST_OBJECTS] if type(each) in kinds]
    found = [each for each in found if "_parameters" in getattr(each, "__dict__", ())]
    inside = {
        id(child)
        for module in found
        for child in module.__dict__.get("_modules", {}).values()
        if child is not None
    }
    return [module for module in found if id(module) not in inside]


def _kinds_of_modules() -> set[type]:
    """Known before the objects are looked through: there are a few hundred, and a million of
    these."""
    found: set[type] = set()
    left: list[type] = [torch.nn.Module]
    while left:
        kind = left.pop()
        if kind not in found:
            found.add(kind)
            left += type.__subclasses__(kind)
    return found
