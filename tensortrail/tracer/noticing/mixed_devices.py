"""The first meeting of operands on different devices at a place, and reads of fresh memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch

from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.storages import PLAIN, Entry, computes, device_of, is_real

if TYPE_CHECKING:
    from tensortrail.tracer.events.recorder import Recorder

Args = tuple[Any, ...]
CPU = torch.device("cpu")
INDEXING = {torch.Tensor.__getitem__, torch.Tensor.__setitem__, torch.Tensor.index_put_}
"""CPU indices into a tensor of another device are legal."""
LEGAL = {
    torch.Tensor.copy_, torch.Tensor.data.__set__, torch.Tensor.grad.__set__, torch.Tensor.set_,
    torch.Tensor.type_as, torch.Tensor.is_set_to, torch._has_compatible_shallow_copy_type,
    *(getattr(torch, name) for name in dir(torch) if name.startswith("_nested_view")),
}  # fmt: skip
"""Copies between devices, questions about objects, and nested tensors, which carry one on meta."""
CONTAINERS = {list, tuple}
MOST_MEETINGS = 10_000
MOST_OPERANDS = 64
Meeting = tuple[Entry | None, dict[str, Any]]
"""The operand that is probably in the wrong place, and the facts."""


class Meetings:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._met: set[tuple[Any, ...]] = set()

    @property
    def possible(self) -> bool:
        return len(self._recorder.storages.devices) > 1

    def suspects(self, args: Args, kwargs: Mapping[str, Any] | None) -> bool:
        """Whether the operands may lie on different devices."""
        first: torch.device | None = None
        for arg in (*args, *kwargs.values()) if kwargs else args:
            kind = type(arg)
            if kind in PLAIN:
                if first is None:
                    first = arg.device
                elif arg.device != first:
                    return True
            elif kind in CONTAINERS or isinstance(arg, torch.Tensor):
                return True
        return False

    def look(self, func: Any, args: Args, kwargs: Mapping[str, Any]) -> Meeting | None:
        """The meeting, if these operands lie on different devices for the first time here."""
        return self._look_closer(func, args, kwargs) if self.suspects(args, kwargs) else None

    def ended(self, func: Any, meeting: Meeting, result: Any = None) -> None:
        """Note it, with the device of what came out; nothing did if the operation raised."""
        entry, facts = meeting
        if isinstance(result, torch.Tensor):
            with torch._C.DisableTorchFunction():
                facts["result"] = self._recorder.storages.device_name(device_of(result))
        self._recorder.note(Did.MEET, entry, op=func, facts=facts)

    def _look_closer(self, func: Any, args: Args, kwargs: Mapping[str, Any]) -> Meeting | None:
        found = [(where, t) for where, t in tensors_in(args, kwargs) if is_real(t)]
        with torch._C.DisableTorchFunction():
            devices = {device_of(t) for where, t in found if not _is_number(t)}
        if len(devices) < 2 or func in LEGAL:
            return None
        with torch._C.DisableTorchFunction():
            into = device_of(found[0][1])
        if func in INDEXING and into != CPU and devices == {into, CPU}:
            return None
        recorder = self._recorder
        key = (func, *sorted(map(str, devices)), recorder.site_here())
        if key in self._met or len(self._met) > MOST_MEETINGS:
            return None
        self._met.add(key)
        entries = [(where, t, recorder.storages.entry(t)) for where, t in found]
        odd = min(
            (entry for _, _, entry in entries if entry is not None),
            key=lambda entry: (entry.device != "meta", entry.device != "cpu"),
            default=None,
        )
        names = [recorder.storages.device_name(device) for device in devices]
        operands = [operand(where, t, entry) for where, t, entry in entries]
        recorder.onloads.explain(operands, [entry for _, _, entry in entries])
        return odd, {"devices": sorted(names), "operands": operands[:MOST_OPERANDS]}


def operand(where: str, tensor: torch.Tensor, entry: Any) -> dict[str, Any]:
    with torch._C.DisableTorchFunction():
        return {
            "arg": where,
            "device": str(device_of(tensor)),
            "dtype": str(tensor.dtype)[6:],
            "shape": _shape(tensor, entry),
            "type": "" if type(tensor) in PLAIN else type(tensor).__name__,
            "storage": entry.number if entry is not None else 0,
        }


def _shape(tensor: torch.Tensor, entry: Any) -> list[int]:
    if computes(tensor):
        return list(entry.rest[2]) if entry is not None else []
    try:
        return list(tensor.shape)
    except RuntimeError:
        return []  # nested


def _is_number(tensor: torch.Tensor) -> bool:
    """On the CPU and without a dimension: it may meet anything."""
    return device_of(tensor) == CPU and not computes(tensor) and not tensor.dim()


def tensors_in(args: Args, kwargs: Mapping[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors among the arguments, with the place of each; looks one list deep."""
    for where, value in (*enumerate(args), *kwargs.items()):
        if isinstance(value, torch.Tensor):
            yield str(where), value
        elif type(value) in (list, tuple):
            for place, each in enumerate(value):
                if isinstance(each, torch.Tensor):
                    yield f"{where}[{place}]", each
