"""Compiled code may be guarded by functions that we wrapped: the wrappers give way.

A guard remembers a function it saw, by identity. Code that saves a checkpoint or moves a module
inside of a compiled region would be compiled again for each wrapper that comes or goes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import CodeType
from typing import Any

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "torch._dynamo.convert_frame"
FUNCTION = re.compile(r"\b(\w+)(?:'\])?(?:\.__(?:code|defaults|kwdefaults|closure)__|, \d+\))")
"""The name in `___check_obj_id(G['torch'].save.__code__, 94653554936832)` and its like."""


def install(recorder: Recorder, patches: Patches) -> None:
    from torch._dynamo.guards import CheckFunctionManager

    def building(original: Any, manager: Any, *args: Any, **kwargs: Any) -> None:
        original(manager, *args, **kwargs)
        recorder.guarded(lambda _: patches.give_way(guarded_by(manager.guard_manager)))

    patches.wrap(CheckFunctionManager, "__init__", building, always=True)
    for guard_manager in _guards_so_far():
        patches.give_way(guarded_by(guard_manager))


def guarded_by(guard_manager: Any) -> set[str]:
    return {name for part in guard_manager.code_parts for name in FUNCTION.findall(part)}


def _guards_so_far() -> Iterator[Any]:
    from torch._dynamo.convert_frame import input_codes
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list

    for reference in list(input_codes.seen):
        if isinstance(code := reference(), CodeType):
            yield from (entry.guard_manager for entry in _debug_get_cache_entry_list(code))
