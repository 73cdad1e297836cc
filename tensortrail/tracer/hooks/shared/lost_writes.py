"""Weights that are written while a hook has brought them are lost: the hook throws them away."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.identity.storages import Entry


class Brought(NamedTuple):
    name: str
    key: str
    """Its name in its module."""
    tensor: Any
    entry: Entry
    kept: str
    """The file that the hook brings it from, "" if it is in memory."""


class Written:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._came: dict[str, tuple[int, int]] = {}
        """Storage and count of writes of each weight when it came."""
        self._lent: dict[str, tuple[int, int]] = {}
        """Storage and identity of each weight when it came, if another in its place is lost."""
        self._told: set[str] = set()

    def lends(self, weights: Iterable[Brought]) -> None:
        for each in weights:
            self._lent[each.name] = (each.entry.number, id(each.tensor))

    def came(self, weights: Iterable[Brought]) -> None:
        for each in weights:
            self._came[each.name] = (each.entry.number, _writes(each.tensor))

    def goes(self, weights: Iterable[Brought], op: str) -> None:
        for name, key, tensor, entry, kept in weights:
            number, writes = self._came.pop(name, (0, 0))
            storage, identity = self._lent.pop(name, (entry.number, id(tensor)))
            replaced = storage != entry.number and identity != id(tensor)
            written = number == entry.number and _writes(tensor) > writes
            if (written or replaced) and name not in self._told:
                self._told.add(name)
                done = "replaced" if replaced else "written"
                facts = {
                    "said": f"thrown away as it was {done}: the hook keeps {kept or 'its own'}",
                    "lost": done,
                    "module": name.removesuffix(f".{key}"),
                    "parameter": name,
                    "kept_in": kept,
                }
                self._recorder.note(Did.HOOK, entry, op=op, facts=facts)


def _writes(tensor: Any) -> int:
    with torch._C.DisableTorchFunction():
        return 0 if tensor.is_inference() else int(tensor._version)
