"""Storages that are alive at the end get names from the modules that own them."""

from __future__ import annotations

import gc

import torch

from tensortrail.tracer.events.recorder import Recorder

MOST_OBJECTS = 5_000_000


def name_what_lives(recorder: Recorder) -> None:
    """Parameters and buffers get the path in their outermost module as their name."""
    if len(recorder.storages):
        for root in _roots():
            recorder.name_module(root)


def _roots() -> list[torch.nn.Module]:
    found = [thing for thing in gc.get_objects()[:MOST_OBJECTS] if _is_module(thing)]
    inside = {
        id(child)
        for module in found
        for child in module.__dict__.get("_modules", {}).values()
        if child is not None
    }
    return [module for module in found if id(module) not in inside]


def _is_module(thing: object) -> bool:
    # By type: `isinstance` would ask proxies what they pretend to be.
    kind = type(thing)
    return issubclass(kind, torch.nn.Module) and "_parameters" in getattr(thing, "__dict__", ())
