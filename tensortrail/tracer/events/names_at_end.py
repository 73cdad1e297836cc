"""Storages that are alive at the end get names from the modules that own them."""

from __future__ import annotations

import gc
from collections.abc import Iterable

import torch

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.identity.inner_tensors import PLAIN

MOST_OBJECTS = 5_000_000


def name_what_lives(recorder: Recorder, errors: Iterable[BaseException] = ()) -> None:
    """Parameters and buffers get the path in their outermost module as their name, and so do the
    plain attributes that were met. Variables that hold models are looked for in the frames that
    these exceptions came through too."""
    if len(recorder.storages):
        recorder.models.look(errors)
        outermost = outermost_modules()
        in_variables = [model for _, model in recorder.models.all()]
        known, outer = set(map(id, in_variables)), set(map(id, outermost))
        # The last one names a tensor that is a part of several.
        _name(recorder, [each for each in outermost if id(each) not in known])
        _name(recorder, [each for each in in_variables if id(each) not in outer], anyway=True)
        _name(recorder, [each for each in outermost if id(each) in known])


def _name(recorder: Recorder, roots: Iterable[torch.nn.Module], anyway: bool = False) -> None:
    for root in roots:
        recorder.name_module(root, anyway=anyway)
        for path, module in root.named_modules():
            for key, value in vars(module).items():
                if (
                    type(value) in PLAIN
                    and (entry := recorder.storages.known(value))
                    and entry.name
                ):
                    name = ".".join(filter(None, (recorder.models.of(root), path, key)))
                    recorder.storages.name(entry, name, anyway)


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
