"""The address 0 is no tensor's own: it is noticed where two tensors share it."""

from __future__ import annotations

from typing import Any

import torch

from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.inner_tensors import is_real, is_wrapper
from tensortrail.tracer.noticing.notes import Notes
from tensortrail.tracer.noticing.wrapper_classes import class_name

MOST_SITES = 10_000
OF_WRAPPER = "a wrapper tensor has no storage of its own"
ON_META = "on meta there are no bytes"


class EmptyAddresses:
    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._zeros: dict[int, set[int]] = {}
        """Site -> storages whose address was 0 there."""

    def asked(self, func: Any, tensor: Any, address: int) -> None:
        """`data_ptr()` gave this."""
        if address or not is_real(tensor):
            return
        with torch._C.DisableTorchFunction():
            if is_wrapper(tensor):
                why = OF_WRAPPER
            elif tensor.device.type == "meta":
                why = ON_META
            elif tensor.numel() == 0:
                why = "it is empty"
            else:
                why = "its storage was freed"
        self.zero(func, tensor, why)

    def zero(self, func: Any, tensor: Any, why: str) -> None:
        """Zero means something only when two different tensors share it at one place."""
        notes = self._notes
        entry = notes.storages.entry(tensor)
        site = notes.site_here()
        if entry is None or len(self._zeros) > MOST_SITES:
            return
        seen = self._zeros.setdefault(site, set())
        if len(seen) < 2 and entry.number not in seen:
            seen.add(entry.number)
            if len(seen) == 2:
                kind = class_name(type(tensor))
                facts = {"why": why, "class": kind, "storages": sorted(seen)}
                notes.note(Did.POINTER, entry, op=func, facts=facts)
