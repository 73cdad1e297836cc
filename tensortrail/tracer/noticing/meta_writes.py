"""Weights that were changed while they are on meta: nothing is changed by that."""

from __future__ import annotations

import sys
from typing import Any

from torch.nn import Parameter

from tensortrail.tracer.identity.sites import frames
from tensortrail.tracer.noticing.notes import Notes


def is_weight_on_meta(target: Any) -> bool:
    return type(target) is Parameter and target.is_meta


class MetaWrites:
    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._lines: dict[int, int] = {}
        """By storage: the first line that did."""

    def wrote(self, target: Any) -> None:
        if not is_weight_on_meta(target):
            return
        user, by = frames(sys._getframe(1))
        entry = self._notes.storages.entry(target)
        if entry is not None and user is not None and by is None:  # no library's doing
            self._lines.setdefault(entry.number, self._notes.site_here())

    def line(self, number: int) -> int | None:
        return self._lines.pop(number, None)
