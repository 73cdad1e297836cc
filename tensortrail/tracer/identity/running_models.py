"""The models that the functions which run now have, by the variables that hold them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from torch.nn import Module

from tensortrail.tracer.identity.model_names import OF_METHODS
from tensortrail.tracer.identity.sites import OURS, OWNERS, USER, file_of, outwards
from tensortrail.tracer.identity.variables import variables

MOST_FRAMES = 60


def running_models() -> Iterator[tuple[str, Module]]:
    """Those in variables, and in attributes of `self`; the innermost function's come first."""
    seen: set[int] = set()
    for frame in outwards(sys._getframe(1), MOST_FRAMES):
        who = OWNERS[file_of(frame)]
        own = variables(frame) if who != OURS else {}
        kept = getattr(own.get("self"), "__dict__", {})
        spaces = [own, kept, frame.f_globals if who == USER else {}]
        for space in spaces:
            for name, value in list(space.items()) if isinstance(space, Mapping) else ():
                if issubclass(type(value), Module) and id(value) not in seen:
                    seen.add(id(value))
                    yield name if name not in OF_METHODS else type(value).__name__, value
