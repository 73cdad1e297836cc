"""Where each module goes by accelerate's own functions, and why there."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from typing import Any, NamedTuple

from tensortrail.doctor.placement.limits import Limits
from tensortrail.doctor.placement.unloaded import Unloaded

Device = int | str
BALANCED = ("auto", "balanced", "balanced_low_0")
_NO_SPACE = re.compile(
    r"^Not enough space on (\S+) to put (\S+) \(space available (-?\d+), module size (\d+)\)\.\n"
    r"This module cannot be split",
    re.MULTILINE,
)
_BUFFERS = re.compile(r"requires (\d+) bytes of buffer for offloaded layers")
_SHARPNESS = 2000
"""The shortage is known to this part of the model."""


class Reason(NamedTuple):
    """Why a module is not on a device, by accelerate's own account of it."""

    device: Device
    module: str
    needs: int
    free: int
    """What was left there; negative where less is allowed than is kept free."""
    reserved: int
    """Kept free for the largest layer, which comes there for its turn."""

    @property
    def missing(self) -> int:
        return self.needs - self.free


class Together(NamedTuple):
    name: str
    modules: int
    largest: int


class Plan(NamedTuple):
    model: str
    sizes_from: str
    total: int
    device_map: Mapping[str, Device]
    used: Mapping[Device, int]
    limits: Mapping[Device, int]
    """After balancing."""
    reasons: tuple[Reason, ...]
    shortage: int | None
    """How much more every GPU would need to hold all; 0 if nothing is offloaded, None if no
    amount is known to do it."""
    unsplit: tuple[Together, ...]
    tied: tuple[tuple[str, ...], ...]

    moved: Mapping[Device, int]
    """Bytes that come to a GPU in every step, by where they wait. Buffers stay on the GPU."""
    crowded: int
    """Bytes of buffers of offloaded modules that fit on no GPU beside the rest."""


class _Account(NamedTuple):
    """What accelerate says while it places a model."""

    steps: str
    crowded: int


def planned(unloaded: Unloaded, limits: Limits, strategy: str = "auto") -> Plan:
    from accelerate.utils import find_tied_parameters
    from accelerate.utils.modeling import compute_module_sizes

    model = unloaded.model
    with _quiet():
        sizes = compute_module_sizes(model)
        memory = _memory(model, limits, strategy)
        device_map, account = _placed(model, memory)
        used = _used(device_map, sizes)
        tied = tuple(tuple(sorted(each)) for each in find_tied_parameters(model))
        away = used.get("cpu", 0) + used.get("disk", 0)
        shortage = _shortage(model, limits, strategy, sizes[""]) if away else 0
    return Plan(
        type(model).__name__,
        unloaded.sizes_from,
        sizes[""],
        device_map,
        used,
        memory,
        tuple(_reasons(account.steps, memory, device_map, sizes)),
        shortage,
        tuple(_unsplit(model, sizes)),
        tied,
        _moved(model, device_map),
        account.crowded,
    )


def device_of(name: str, device_map: Mapping[str, Device]) -> Device | None:
    """Of a tensor, by the entry of the map that is nearest to it."""
    while name not in device_map:
        if not name:
            return None
        name = name.rpartition(".")[0]
    return device_map[name]


def _moved(model: Any, device_map: Mapping[str, Device]) -> dict[Device, int]:
    found: dict[Device, int] = {}
    for name, each in model.named_parameters():
        device = device_of(name, device_map)
        if device in ("cpu", "disk"):
            found[device] = found.get(device, 0) + each.numel() * each.element_size()
    return found


def _no_split(model: Any) -> list[str]:
    return list(getattr(model, "_no_split_modules", None) or ())


def _memory(model: Any, limits: Limits, strategy: str, more: int = 0) -> dict[Device, int]:
    from accelerate.utils import get_balanced_memory

    asked = limits.as_max_memory(more)
    if strategy not in BALANCED:
        return asked
    low_zero = strategy == "balanced_low_0"
    balanced = get_balanced_memory(model, asked, _no_split(model), low_zero=low_zero)
    return {device: int(size) for device, size in balanced.items()}


def _placed(model: Any, memory: Mapping[Device, int]) -> tuple[dict[str, Device], _Account]:
    from accelerate import infer_auto_device_map

    steps = StringIO()
    with redirect_stdout(steps), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = infer_auto_device_map(model, dict(memory), _no_split(model), verbose=True)
    crowded = _BUFFERS.search("\n".join(str(each.message) for each in told))
    return dict(found), _Account(steps.getvalue(), int(crowded[1]) if crowded else 0)


def _used(device_map: Mapping[str, Device], sizes: Mapping[str, int]) -> dict[Device, int]:
    used: dict[Device, int] = {}
    for name, device in device_map.items():
        used[device] = used.get(device, 0) + sizes.get(name, 0)
    return used


def _reasons(
    account: str,
    memory: Mapping[Device, int],
    device_map: Mapping[str, Device],
    sizes: Mapping[str, int],
) -> Iterator[Reason]:
    """One for each device that was left: the module that did not fit any more."""
    used = _used(device_map, sizes)
    for name, module, free, needs in _NO_SPACE.findall(account):
        device: Device = int(name) if name.isdigit() else name
        reserved = memory.get(device, 0) - used.get(device, 0) - int(free)
        yield Reason(device, module, int(needs), int(free), max(0, reserved))


def _shortage(model: Any, limits: Limits, strategy: str, total: int) -> int | None:
    """The least that every GPU needs more, by asking accelerate again."""

    def holds_all(more: int) -> bool:
        device_map, _ = _placed(model, _memory(model, limits, strategy, more))
        return not {"cpu", "disk"} & set(map(str, device_map.values()))

    low, high = 0, 2 * total
    if not limits.gpus or not holds_all(high):
        return None
    while high - low > max(1, total // _SHARPNESS):
        middle = (low + high) // 2
        low, high = (low, middle) if holds_all(middle) else (middle, high)
    return high


def _unsplit(model: Any, sizes: Mapping[str, int]) -> Iterator[Together]:
    for name in sorted(_no_split(model)):
        found = [sizes[path] for path, each in model.named_modules() if type(each).__name__ == name]
        if found:
            yield Together(name, len(found), max(found))


@contextmanager
def _quiet() -> Iterator[None]:
    """accelerate warns of every GPU that is not here."""
    library = logging.getLogger("accelerate")
    before = library.level
    library.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        library.setLevel(before)
