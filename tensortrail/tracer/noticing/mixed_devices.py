"""Operands on different devices are noticed where they first meet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.inner_tensors import PLAIN, computes, device_of, is_real
from tensortrail.tracer.identity.storages import Entry
from tensortrail.tracer.noticing.argument_names import argument
from tensortrail.tracer.noticing.notes import Notes
from tensortrail.tracer.noticing.operands import MOST_OPERANDS, Args, operand, tensors_in
from tensortrail.tracer.noticing.weights_not_brought import NotBrought

CPU = torch.device("cpu")
INDEXING = {torch.Tensor.__getitem__, torch.Tensor.__setitem__, torch.Tensor.index_put_}
"""CPU indices into a tensor of another device are legal."""
LEGAL = {
    torch.Tensor.copy_, torch.Tensor.set_, torch.Tensor.type_as, torch.Tensor.is_set_to,
    torch._has_compatible_shallow_copy_type,
    torch.ops.aten.copy_.default, torch.ops.aten._to_copy.default,
    *(getattr(torch, name) for name in dir(torch) if name.startswith("_nested_view")),
}  # fmt: skip
"""Copies between devices, questions about objects, and nested tensors, which carry one on meta."""
CONTAINERS = {list, tuple}
NO_TENSORS = {int, float, bool, str, type(None), torch.dtype, torch.device, torch.Size}
"""Most operands that are no tensors; a look at their class takes less than a question."""
MOST_MEETINGS = 10_000
Meeting = tuple[Entry | None, dict[str, Any]]
"""The operand that is probably in the wrong place, and the facts."""


class MixedDevices:
    def __init__(self, notes: Notes, not_brought: NotBrought) -> None:
        self._notes, self._not_brought = notes, not_brought
        self._met: set[tuple[Any, ...]] = set()

    @property
    def possible(self) -> bool:
        return len(self._notes.storages.devices) > 1

    def suspects(self, args: Args, kwargs: Mapping[str, Any] | None) -> bool:
        """Whether the operands may lie on different devices."""
        if not self.possible:
            return False
        first: torch.device | None = None
        others = 0
        for arg in (*args, *kwargs.values()) if kwargs else args:
            kind = type(arg)
            if kind in PLAIN:
                if first is None:
                    first = arg.device
                elif arg.device != first:
                    return True
            elif kind in CONTAINERS:
                return True
            elif kind not in NO_TENSORS and isinstance(arg, torch.Tensor):
                others += 1
        return others > 1 or (others == 1 and first is not None)

    def look(self, func: Any, args: Args, kwargs: Mapping[str, Any]) -> Meeting | None:
        """The meeting, if these operands lie on different devices for the first time here."""
        return self._look_closer(func, args, kwargs) if self.suspects(args, kwargs) else None

    def ended(self, func: Any, meeting: Meeting, result: Any = None) -> None:
        """Note it, with the device of what came out; nothing did if the operation raised."""
        entry, facts = meeting
        if isinstance(result, torch.Tensor):
            with torch._C.DisableTorchFunction():
                facts["result"] = self._notes.storages.device_name(device_of(result))
        self._notes.note(Did.MEET, entry, op=func, facts=facts)

    def _look_closer(self, func: Any, args: Args, kwargs: Mapping[str, Any]) -> Meeting | None:
        devices = _devices(args, kwargs)
        if len(devices) < 2 or func in LEGAL or getattr(func, "__name__", "") == "__set__":
            return None  # an attribute, as `data` and `grad`, may be set across devices
        found = [(where, t) for where, t in tensors_in(args, kwargs) if is_real(t)]
        with torch._C.DisableTorchFunction():
            into = device_of(found[0][1])
        legal = func in INDEXING and into != CPU and devices == {into, CPU}
        if legal and not self._is_left_by_hook(*found[0]):
            return None
        notes = self._notes
        key = (func, *sorted(map(str, devices)), notes.site_here())
        if key in self._met or len(self._met) > MOST_MEETINGS:
            return None
        self._met.add(key)
        entries = [(where, t, notes.storages.entry(t)) for where, t in found]
        odd = min(
            (entry for _, _, entry in entries if entry is not None),
            key=lambda entry: (entry.device != "meta", entry.device != "cpu"),
            default=None,
        )
        names = [notes.storages.device_name(device) for device in devices]
        called = notes.op_text(func)
        operands = [operand(argument(called, where), t, entry) for where, t, entry in entries]
        self._not_brought.explain(operands, [entry for _, _, entry in entries])
        return odd, {"devices": sorted(names), "operands": operands[:MOST_OPERANDS]}

    def _is_left_by_hook(self, where: str, tensor: torch.Tensor) -> bool:
        """A placeholder whose values a hook keeps elsewhere: what is taken from it has none."""
        if device_of(tensor).type != "meta":
            return False
        entry = self._notes.storages.entry(tensor)
        told = [operand(where, tensor, entry)]
        self._not_brought.explain(told, [entry])
        return "hook" in told[0]


def _devices(args: Args, kwargs: Mapping[str, Any]) -> set[torch.device]:
    """Of the operands, but for numbers: a tensor on the CPU without a dimension may meet anything.
    Most are on one device, so nothing more is asked here."""
    found: set[torch.device] = set()
    with torch._C.DisableTorchFunction():
        for value in (*args, *kwargs.values()):
            for tensor in value if type(value) in CONTAINERS else (value,):
                if type(tensor) in NO_TENSORS or not is_real(tensor):
                    continue
                device = device_of(tensor)
                if device != CPU or computes(tensor) or tensor.dim():
                    found.add(device)
    return found
