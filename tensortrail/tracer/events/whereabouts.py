"""Where the program is: the line, thread and phase that an event belongs to."""

from __future__ import annotations

import sys
from types import FrameType

from tensortrail.tracer.events.of_thread import OfThread
from tensortrail.tracer.identity.sites import MOST_SITES, Key, Known, Place, frames, place
from tensortrail.tracer.trail.writer import TrailWriter


class Whereabouts:
    """The part of `Recorder` that knows."""

    def __init__(self, writer: TrailWriter) -> None:
        self.writer = writer
        self.of_thread = OfThread()
        self.sites: dict[Key, Known] = {}
        """Places that were met."""

    def site(self, frame: FrameType | None) -> int:
        user, by = frames(frame)
        # Code that a compiler made may hold constants that cannot be hashed.
        key: Key = (id(user.f_code), user.f_lasti) if user else (0, 0)
        if by:
            key = (*key, id(by.f_code), by.f_lasti)
        known = self.sites.get(key)
        if known is not None:
            return known[0]
        if user is None and self.of_thread.started_by is not None:
            return self.writer.site(*self.of_thread.started_by, place(by))
        number = self.writer.site(*place(user), place(by))
        if len(self.sites) < MOST_SITES:
            codes = (user.f_code if user else None, by.f_code if by else None)
            self.sites[key] = (number, *codes)
        return number

    def user_here(self) -> Place | None:
        """The user's line that runs now."""
        user, _ = frames(sys._getframe(1))
        return place(user) if user is not None else self.of_thread.started_by

    def line(self, file: str, line: int, function: str) -> int:
        return self.writer.site(file, line, function, ("", 0, ""))

    def site_here(self) -> int:
        return self.site(sys._getframe(1))

    def context(self) -> int:
        local = self.of_thread
        if local.context < 0:
            phase = local.phases[-1] if local.phases else local.base
            local.context = self.writer.context(local.name, phase)
        return local.context
