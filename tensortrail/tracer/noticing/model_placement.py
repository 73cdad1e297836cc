"""A device map says where a model was to lie; this compares it with where its weights lie."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch.nn import Module

from tensortrail.rules.shared.device_maps import DISK, ELSEWHERE, NOWHERE, SPLIT, UNKNOWN
from tensortrail.tracer.identity.inner_tensors import device_of
from tensortrail.tracer.noticing.onload_hooks import Bringer, OnloadHooks, device_name

CHOSEN = ("auto", "balanced", "balanced_low_0", "sequential")
"""Asks the library for a map."""
MOST_ROWS, MOST_DIFFERENCES = 400, 50


@dataclass
class Lies:
    """A weight of the model, by all its names."""

    names: list[str]
    place: str
    """A device, "disk", or "" if nobody knows where its values are."""
    nbytes: int
    hook: str = ""
    storage: int = 0


@dataclass
class Row:
    """What one entry of the device map has come to."""

    module: str
    declared: str
    lies: list[str]
    nbytes: int
    hooks: list[str] = field(default_factory=list)
    parts: dict[str, int] = field(default_factory=dict)
    """Bytes of the entries it could be split into: a block each, and what stands beside blocks."""


@dataclass
class Difference:
    kind: str
    module: str
    declared: str
    lies: str = ""
    why: str = ""
    instead: dict[str, str] = field(default_factory=dict)
    """Entries of the map for the parts beside it, where one entry was for all of them; for the
    module of a weight that has an entry, and no hook."""
    storage: int = 0
    """The number of the weight's storage in the trail."""


def placement(model: Module, declared: Any, chosen: Any, onloads: OnloadHooks) -> dict[str, Any]:
    """The facts of the event. `chosen` is the map that the library made of the declared one."""
    effective = _as_map(getattr(model, "hf_device_map", None) or chosen or declared)
    weights = list(_weights(model, onloads))
    rows = [_row(model, module, place, weights) for module, place in effective.items()]
    differences = [
        *_unknown(model, effective),
        *_elsewhere(model, effective, weights),
        *_split(model, effective),
    ]
    return {
        "said": _said(model, declared, rows),
        "model": type(model).__name__,
        "declared": _as_map(declared) or str(declared),
        "rows": [asdict(row) for row in rows[:MOST_ROWS]],
        "more_rows": max(0, len(rows) - MOST_ROWS),
        "differences": [asdict(each) for each in differences[:MOST_DIFFERENCES]],
    }


def _as_map(device_map: Any) -> dict[str, str]:
    """A device for the whole model is a map too."""
    if isinstance(device_map, Mapping):
        return {str(name): device_name(place) for name, place in device_map.items()}
    if device_map is None or device_map in CHOSEN:
        return {}
    return {"": device_name(device_map)}


def _said(model: Module, declared: Any, rows: list[Row]) -> str:
    total: dict[str, int] = {}
    for row in rows:
        for place in row.lies:
            total[place] = total.get(place, 0) + 1
    over = ", ".join(f"{place or 'nowhere'}: {count}" for place, count in total.items())
    asked = f"device_map={declared!r}" if isinstance(declared, (str, int)) else "a device_map"
    return f"{type(model).__name__} placed by {asked}, modules on {over or 'no device'}"


def _weights(model: Module, onloads: OnloadHooks) -> Iterator[Lies]:
    hooks: dict[str, Bringer] = {}
    for path, module in model.named_modules():
        for bringer in onloads.of(module):
            if not bringer.stays:
                hooks[path] = bringer
    found: dict[int, Lies] = {}
    for name, tensor in model.named_parameters(remove_duplicate=False):
        if id(tensor) in found:
            found[id(tensor)].names.append(name)
            continue
        place, hook = _place(name, tensor, hooks)
        with torch._C.DisableTorchFunction():
            nbytes = tensor.numel() * tensor.element_size()
        found[id(tensor)] = Lies([name], place, nbytes, hook, onloads.number_of(tensor))
    yield from found.values()


def _place(name: str, tensor: Any, hooks: Mapping[str, Bringer]) -> tuple[str, str]:
    with torch._C.DisableTorchFunction():
        device = device_of(tensor)
    prefix, _, key = name.rpartition(".")
    while True:
        hook = hooks.get(prefix)
        if hook is not None and (hook.whole or "." not in key):
            break
        if not prefix:
            return "" if device.type == "meta" else device_name(device), ""
        prefix, _, last = prefix.rpartition(".")
        key = f"{last}.{key}"
    if device.type != "meta":
        return device_name(device), hook.hook
    kept = hook.kept_in(key)
    return ("" if kept is None else DISK if kept else "cpu"), hook.hook


def _row(model: Module, module: str, declared: str, weights: list[Lies]) -> Row:
    own = [each for each in weights if any(_below(name, module) for name in each.names)]
    return Row(
        module,
        declared,
        list(dict.fromkeys(each.place for each in own)),
        sum(each.nbytes for each in own),
        list(dict.fromkeys(each.hook for each in own if each.hook)),
        {each: _bytes_below(each, own) for each in list(_parts(model, module))[:MOST_ROWS]},
    )


def _bytes_below(module: str, weights: list[Lies]) -> int:
    return sum(each.nbytes for each in weights if any(_below(name, module) for name in each.names))


def _parts(model: Module, path: str) -> Iterator[str]:
    """The parts of a module that has blocks, down to the blocks; nothing for one without any."""
    module = dict(model.named_modules()).get(path)
    if module is None or not any(map(_is_block, dict(module.named_modules()))):
        return
    for tensors in (module._parameters, module._buffers):
        yield from (_joined(path, key) for key, each in tensors.items() if each is not None)
    for name, child in module.named_children():
        below = _joined(path, name)
        split = list(_parts(model, below)) if not _is_block(below) else []
        yield from split or ([below] if any(True for _ in child.parameters()) else [])


def _is_block(path: str) -> bool:
    return path.rpartition(".")[2].isdigit()


def _joined(*names: str) -> str:
    return ".".join(filter(None, names))


def _unknown(model: Module, effective: Mapping[str, str]) -> Iterator[Difference]:
    known = {name for name, _ in model.named_modules()}
    known |= {name for name, _ in model.named_parameters(remove_duplicate=False)}
    known |= {name for name, _ in model.named_buffers(remove_duplicate=False)}
    for name, place in effective.items():
        if name not in known:
            yield Difference(UNKNOWN, name, place)


def _elsewhere(
    model: Module, effective: Mapping[str, str], weights: list[Lies]
) -> Iterator[Difference]:
    told: set[tuple[str, str, str]] = set()
    for each in weights:
        for name in each.names:
            entry = _entry(name, effective)
            declared = effective[entry] if entry is not None else ""
            if not declared or each.place == declared:
                continue
            tied = [other for other in each.names if other != name]
            key = (entry or "", each.place, str(tied))
            if key not in told:
                told.add(key)
                why = f"tied to {', '.join(tied)}" if tied else ""
                if each.place:
                    path = name.rpartition(".")[0]
                    is_weight = entry == name and path and not (why or each.hook)
                    instead = {path: declared} if is_weight else {}
                    yield Difference(
                        ELSEWHERE, name, declared, each.place, why, instead, each.storage
                    )
                else:
                    beside = _beside(model, entry or "", name.rpartition(".")[0], declared)
                    told_of = each.storage
                    yield Difference(NOWHERE, name, declared, instead=beside, storage=told_of)


def _beside(model: Module, entry: str, path: str, place: str) -> dict[str, str]:
    """What the entry sends there, without the module at the path."""
    found: dict[str, str] = {}
    while path != entry and path:
        above, _, own = path.rpartition(".")
        for child, _ in model.get_submodule(above).named_children():
            if child != own:
                found[f"{above}.{child}" if above else child] = place
        path = above
    return found


def _split(model: Module, effective: Mapping[str, str]) -> Iterator[Difference]:
    """A block whose parts must stay together lies on several devices."""
    together = set(getattr(model, "_no_split_modules", None) or ())
    for path, module in model.named_modules():
        if type(module).__name__ in together:
            places = [place for name, place in effective.items() if name.startswith(f"{path}.")]
            if len(set(places)) > 1:
                lies = ", ".join(dict.fromkeys(places))
                yield Difference(SPLIT, path, "one device", lies, type(module).__name__)


def _entry(name: str, effective: Mapping[str, str]) -> str | None:
    """The entry of the map that says where this weight goes: the one that says most of its name."""
    fitting = [entry for entry in effective if _below(name, entry)]
    return max(fitting, key=len, default=None)


def _below(name: str, module: str) -> bool:
    return not module or name == module or name.startswith(f"{module}.")
