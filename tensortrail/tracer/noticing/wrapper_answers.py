"""Wrapper subclasses may give answers that are not what their callers think."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.inner_tensors import PLAIN, device_of, is_wrapper
from tensortrail.tracer.noticing.empty_addresses import OF_WRAPPER, ON_META, EmptyAddresses
from tensortrail.tracer.noticing.notes import Notes
from tensortrail.tracer.noticing.wrapper_classes import class_name, overrides, place_of

MOST_TYPES = 10_000
MOST_LOOKS = 100
"""At tensors of one class: what its constructor forgets, it forgets soon."""


class Wrappers:
    def __init__(self, notes: Notes, addresses: EmptyAddresses) -> None:
        self._notes, self._addresses = notes, addresses
        self._said: set[tuple[Any, ...]] = set()
        self._outcomes: dict[tuple[Any, type], dict[bool, str]] = {}
        """Factory and class -> whether the answer was of the class, with the device asked for."""
        self._looks: Counter[type] = Counter()
        self.overridden: Callable[[type], None] = lambda owner: None
        """Called with a class that has an `untyped_storage` of its own, which no mode sees."""
        self._storages: dict[int, weakref.ref[Any]] = {}
        """First inner storage of a wrapper -> what `untyped_storage()` gave last."""
        self.sizes_asked: Callable[[], None] = lambda: None
        """Called when the first storage of a wrapper is given away: its size may be asked next."""
        self._given: dict[int, tuple[weakref.ref[Any], Any, type, int]] = {}
        """Storages given away, by identity: with the wrapper's entry, its class, its real bytes."""

    def answered(self, func: Any, asked: Any, made: Any, kwargs: dict[str, Any]) -> None:
        """A wrapper answered a factory, or an operation that keeps the type."""
        want, dtype = kwargs.get("device"), kwargs.get("dtype")
        with torch._C.DisableTorchFunction():
            is_tensor = isinstance(made, torch.Tensor)
            device = str(device_of(made)) if is_tensor else ""
            expected = str(torch.device(want)) if want is not None else str(device_of(asked))
            other_dtype = dtype is not None and is_tensor and made.dtype is not dtype
        same_type = type(made) is type(asked)
        self._compare(func, asked, same_type, expected)
        if same_type and _same(device, expected) and not other_dtype:
            return
        facts = {
            "question": "answer",
            "class": class_name(type(asked)),
            "result": class_name(type(made)),
            "device": device,
            "asked_device": expected,
            "explicit": want is not None,
            "same_type": same_type,
            "defined": place_of(type(asked), "__torch_dispatch__"),
        }
        if other_dtype:
            facts |= {"dtype": str(made.dtype), "asked_dtype": str(dtype)}
        self._say(asked, func, facts, func, type(asked), type(made), device == expected)

    def _compare(self, func: Any, asked: Any, same_type: bool, device: str) -> None:
        """The same class, asked the same, answered now with its own type and now with another."""
        outcomes = self._outcomes.setdefault((func, type(asked)), {})
        if same_type in outcomes or len(self._outcomes) > MOST_TYPES:
            return
        outcomes[same_type] = device
        if len(outcomes) == 2 and outcomes[True] != outcomes[False]:
            facts = {
                "question": "asymmetry",
                "class": class_name(type(asked)),
                "own_on": outcomes[True],
                "other_on": outcomes[False],
                "defined": place_of(type(asked), "__torch_dispatch__"),
            }
            self._say(asked, func, facts, "asymmetry", func, type(asked))

    def met(self, tensor: Any) -> None:
        """A wrapper was seen: does it say the device its inner tensors are on?"""
        notes, kind = self._notes, type(tensor)
        self._looks[kind] += 1
        if self._looks[kind] > MOST_LOOKS:
            return
        if self._looks[kind] == 1 and (owner_of := overrides(kind, "untyped_storage")):
            self.overridden(owner_of)
        entries = notes.storages.entries(tensor)
        with torch._C.DisableTorchFunction():
            outer = notes.storages.device_name(device_of(tensor))
        # Scales and counts of no dimension may live on the CPU.
        inner = sorted(
            {each.device for each in entries if each.described.shape or each.device != "cpu"}
        )
        if inner and not any(_same(each, outer) for each in inner):
            facts = {"question": "device", "outer": outer, "inner": inner}
            facts |= {"class": class_name(kind), "defined": place_of(kind, "__new__")}
            self._say(tensor, "", facts, "device", kind, outer, *inner)

    def storage(self, func: Any, tensor: Any, storage: Any) -> None:
        """`untyped_storage()` of a wrapper gave this."""
        if type(tensor) in PLAIN:
            if storage.device.type == "meta":
                self._addresses.zero(func, tensor, ON_META)
            return
        if not is_wrapper(tensor):
            return
        self.met(tensor)
        entry = self._notes.storages.entry(tensor)
        if entry is None:
            return
        self._give(tensor, storage, entry)
        last = self._storages.get(entry.number)
        if len(self._storages) < MOST_TYPES:
            self._storages[entry.number] = weakref.ref(storage)
        if last is not None and last() is not storage:
            kind = type(tensor)
            facts = {"question": "storage", "class": class_name(kind), "bytes": storage.nbytes()}
            facts["defined"] = place_of(kind, "untyped_storage")
            self._say(tensor, func, facts, "storage", kind)
        elif _is_nowhere(storage):
            self._addresses.zero(func, tensor, OF_WRAPPER)

    def _give(self, tensor: Any, storage: Any, entry: Any) -> None:
        if not self._given:
            self.sizes_asked()
        entries = self._notes.storages.entries(tensor)
        if len(self._given) < MOST_TYPES and entry.key != storage._cdata:
            real = sum(each.described.nbytes for each in entries)
            self._given[storage._cdata] = (weakref.ref(storage), entry, type(tensor), real)

    def size(self, func: str, storage: Any, nbytes: int) -> None:
        """The size of a storage was asked: is it a wrapper's that holds other bytes?"""
        held, entry, kind, real = self._given.get(storage._cdata, (None, None, object, 0))
        if held is not None and held() is storage and nbytes != real:
            facts = {"question": "size", "class": class_name(kind), "bytes": nbytes, "held": real}
            self._note(entry, func, facts, "size", kind)

    def set_to_nothing(self, tensor: Any) -> None:
        """`set_(storage)` was given a storage that had no bytes: it was made larger unasked."""
        with torch._C.DisableTorchFunction():
            wants = tensor.numel() > 0
        if wants:
            facts = {"question": "set", "class": class_name(type(tensor)), "bytes": 0}
            self._say(tensor, "Tensor.set_", facts, "set")

    def given_data(self, func: Any, tensor: Any, given: Any) -> None:
        """`.data = ` of a wrapper: its shape, dtype and device change, its inner tensors do not."""
        storages = self._notes.storages
        own = {each.number for each in storages.entries(tensor)}
        new = storages.entries(given)
        if own and new and not own & {each.number for each in new}:
            kind = type(tensor)
            facts = {"question": "data", "class": class_name(kind), "storages": [new[0].number]}
            self._say(tensor, func, facts, "data", kind)

    def moved(self, func: Any, asked: Any, made: Any) -> None:
        """A wrapper was moved: did all that is inside of it go along?"""
        notes = self._notes
        if not (is_wrapper(made) and type(made) is type(asked)):
            return
        before, after = _places(notes, asked), _places(notes, made)
        homes = set(before.values())
        went = [place for key, place in after.items() if place != before.get(key)]
        stayed = [key for key, place in after.items() if place == before.get(key)]
        if len(homes) == 1 and went and stayed and before.keys() == after.keys():
            facts = {"question": "companion", "class": class_name(type(asked)), "stayed": stayed}
            facts |= {"went": went[0], "device": homes.pop()}
            self._say(made, func, facts, "companion", type(asked))

    def _say(self, tensor: Any, func: Any, facts: dict[str, Any], *key: Any) -> None:
        self._note(self._notes.storages.entry(tensor), func, facts, *key)

    def _note(self, entry: Any, func: Any, facts: dict[str, Any], *key: Any) -> None:
        """Each answer is noted once at each place."""
        key = (*key, self._notes.site_here())
        if key in self._said or len(self._said) > MOST_TYPES:
            return
        self._said.add(key)
        self._notes.note(Did.WRAPPER, entry, op=func, facts=facts)


def _places(notes: Notes, wrapper: Any) -> dict[str, str]:
    """Where each inner tensor lies. Those of no dimension may lie on the CPU."""
    found: dict[str, str] = {}
    for name in type(wrapper).__tensor_flatten__(wrapper)[0]:
        entry = notes.storages.entry(getattr(wrapper, name))
        if entry is not None and entry.described.shape:
            found[name] = entry.device
    return found


def _is_nowhere(storage: Any) -> bool:
    try:
        return bool(storage.data_ptr() == 0)
    except RuntimeError:
        return False  # who asks this one for its address learns it by the same exception


def _same(one: str, other: str) -> bool:
    """`cuda` and `cuda:0` are the same until somebody asks for another card."""
    return one == other or one.partition(":")[0] == other or other.partition(":")[0] == one
