"""A checkpoint that was read into copies of a model's weights, which nobody gives to the model."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from torch._C import DisableTorchFunction
from torch.nn import Module

from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.running_models import running_models
from tensortrail.tracer.identity.storages import Entry
from tensortrail.tracer.noticing.fresh_memory import AT_THE_END, FreshMemory
from tensortrail.tracer.noticing.notes import Notes

MOST = 1000


@dataclass
class Unread:
    site: int
    op: str
    model: str
    path: str
    entries: dict[int, Entry]


class UnreadLoads:
    def __init__(self, notes: Notes, fresh: FreshMemory) -> None:
        self._notes, self._fresh = notes, fresh
        self._loads: list[Unread] = []
        self._asked: Callable[[], Module | None] = lambda: None

    def asked(self, module: Module) -> None:
        """It gave its state dict."""
        self._asked = weakref.ref(module)

    @property
    def some(self) -> bool:
        return bool(self._loads)

    def loaded(self, op: str, tensors: Mapping[str, Any], path: str) -> None:
        """Values were read into these, by their keys."""
        found = ((key, self._notes.storages.entry(each)) for key, each in tensors.items())
        entries = {key: entry for key, entry in found if entry is not None}
        model = self._model_of(entries)
        if model and len(entries) <= MOST:
            kept = {entry.number: entry for entry in entries.values()}
            self._loads.append(Unread(self._notes.site_here(), op, model, path, kept))
            for entry in kept.values():
                self._fresh.awaited(entry, self._read)

    def _model_of(self, entries: Mapping[str, Entry]) -> str:
        """The model at hand that has a weight for each key, and other memory."""
        numbers = {each.number for each in entries.values()}
        with DisableTorchFunction():
            last = self._asked()
            for name, model in sorted(running_models(), key=lambda each: each[1] is not last):
                if not _is_plain(model) or self._has_one(model, numbers):
                    continue
                own = dict(model.state_dict(keep_vars=True))
                known = [self._notes.storages.known(each) for each in own.values()]
                held = {each.number for each in known if each is not None}
                if own and held.isdisjoint(numbers) and _fits(own, entries):
                    return name
        return ""

    def _has_one(self, model: Module, numbers: Collection[int]) -> bool:
        """Its first weight lies there: it need not be asked for all of them."""
        first = self._notes.storages.known(next(model.parameters(), None))
        return first is not None and first.number in numbers

    def given(self, tensors: Iterable[Any]) -> None:
        """Somebody takes their values."""
        for each in tensors if self._loads else ():
            known = self._notes.storages.known(each)
            if known is not None:
                self.taken(known.number)

    def taken(self, number: int) -> None:
        for load in [each for each in self._loads if number in each.entries]:
            self._loads.remove(load)
            for each in load.entries:
                self._fresh.freed(each)

    def _read(self, entry: Entry, op: Any) -> None:
        if op != AT_THE_END:
            self.taken(entry.number)

    def at_end(self) -> None:
        for load in self._loads if not self._fresh.gave_up else ():
            first = next(iter(load.entries.values()))
            facts = {"unread": load.model, "path": load.path, "count": len(load.entries)}
            self._notes.note_at(load.site, Did.HOOK, first, op=load.op, facts=facts)
        self._loads.clear()


def _is_plain(model: Module) -> bool:
    """No code of the program's gives its state dict."""
    return type(model).state_dict is Module.state_dict and not model._state_dict_pre_hooks


def _fits(own: Mapping[str, Any], keys: Iterable[str]) -> bool:
    ends = {key for each in keys for key in _endings(each)}
    return own.keys() <= ends


def _endings(key: str) -> Iterable[str]:
    """`model.0.weight`, `0.weight`"""
    parts = key.split(".")
    return (".".join(parts[n:]) for n in range(min(3, len(parts))))
