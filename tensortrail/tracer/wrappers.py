"""Wrapper subclasses and empty addresses: answers that are not what their callers think."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from tensortrail.rules.timeline import Did
from tensortrail.tracer.storages import PLAIN, is_real, is_wrapper

if TYPE_CHECKING:
    from tensortrail.tracer.recorder import Recorder

MOST_TYPES = 10_000


class Wrappers:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._said: set[tuple[Any, ...]] = set()
        self._storages: dict[int, tuple[int, int]] = {}
        """First inner storage of a wrapper -> what `untyped_storage()` gave last, its bytes."""
        self._zeros: dict[int, set[int]] = {}
        """Site -> storages whose address was 0 there."""

    def answered(self, func: Any, asked: Any, made: Any, kwargs: dict[str, Any]) -> None:
        """A wrapper answered a factory, or an operation that keeps the type."""
        want = kwargs.get("device")
        with torch._C.DisableTorchFunction():
            device = str(made.device) if isinstance(made, torch.Tensor) else ""
            expected = str(torch.device(want)) if want is not None else str(asked.device)
        same_type = type(made) is type(asked)
        same_device = device == expected or device.partition(":")[0] == expected
        if same_type and same_device:
            return
        facts = {
            "question": "answer",
            "class": class_name(type(asked)),
            "result": class_name(type(made)),
            "device": device,
            "asked_device": expected,
            "same_type": same_type,
        }
        self._say(asked, func, facts, func, type(asked), type(made), same_device)

    def met(self, tensor: Any) -> None:
        """A wrapper was seen: does it say the device its inner tensors are on?"""
        recorder = self._recorder
        entries = recorder.storages.entries(tensor)
        with torch._C.DisableTorchFunction():
            outer = recorder.storages.device_name(tensor.device)
        inner = sorted({entry.device for entry in entries})
        if inner and inner != [outer] and not (len(inner) == 1 and _same(inner[0], outer)):
            facts = {"question": "device", "outer": outer, "inner": inner}
            facts["class"] = class_name(type(tensor))
            self._say(tensor, "", facts, "device", type(tensor), outer, *inner)

    def storage(self, func: Any, tensor: Any, storage: Any) -> None:
        """`untyped_storage()` of a wrapper gave this."""
        if type(tensor) in PLAIN or not is_wrapper(tensor):
            return
        self.met(tensor)
        entry = self._recorder.storages.entry(tensor)
        if entry is None:
            return
        given, nbytes = storage._cdata, storage.nbytes()
        last = self._storages.get(entry.number)
        if len(self._storages) < MOST_TYPES:
            self._storages[entry.number] = (given, nbytes)
        facts = {"question": "storage", "class": class_name(type(tensor)), "bytes": nbytes}
        if last is not None and last[0] != given:
            self._say(tensor, func, {**facts, "fresh": True}, "storage", type(tensor))
        elif storage.data_ptr() == 0:
            self._pointer(func, tensor, "a wrapper tensor has no storage of its own")

    def set_to(self, given: Any, tensor: Any) -> None:
        """`set_(storage)` with a storage that has no bytes."""
        with torch._C.DisableTorchFunction():
            empty = given.nbytes() == 0 and tensor.numel() > 0
        if empty:
            facts = {"question": "set", "class": class_name(type(tensor)), "bytes": 0}
            self._say(tensor, "Tensor.set_", facts, "set", self._recorder.site_here())

    def address(self, func: Any, tensor: Any, address: int) -> None:
        """`data_ptr()` gave this."""
        if address or not is_real(tensor):
            return
        with torch._C.DisableTorchFunction():
            if is_wrapper(tensor):
                why = "a wrapper tensor has no storage of its own"
            elif tensor.device.type == "meta":
                why = "on meta there are no bytes"
            elif tensor.numel() == 0:
                why = "it is empty"
            else:
                why = "its storage was freed"
        self._pointer(func, tensor, why)

    def _pointer(self, func: Any, tensor: Any, why: str) -> None:
        """Zero means something only when two different tensors share it at one place."""
        recorder = self._recorder
        entry = recorder.storages.entry(tensor)
        site = recorder.site_here()
        if entry is None or len(self._zeros) > MOST_TYPES:
            return
        seen = self._zeros.setdefault(site, set())
        if len(seen) < 2 and entry.number not in seen:
            seen.add(entry.number)
            if len(seen) == 2:
                kind = class_name(type(tensor))
                facts = {"why": why, "class": kind, "storages": sorted(seen)}
                recorder.note(Did.POINTER, entry, op=func, facts=facts)

    def _say(self, tensor: Any, func: Any, facts: dict[str, Any], *key: Any) -> None:
        if key in self._said or len(self._said) > MOST_TYPES:
            return
        self._said.add(key)
        recorder = self._recorder
        recorder.note(Did.WRAPPER, recorder.storages.entry(tensor), op=func, facts=facts)


def class_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _same(inner: str, outer: str) -> bool:
    """`cuda` and `cuda:0` are the same until somebody asks for another card."""
    return inner.partition(":")[0] == outer or outer.partition(":")[0] == inner
