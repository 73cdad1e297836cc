"""accelerate's hooks bring weights; this tells which, and where they are kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from tensortrail.tracer.noticing.onload_hooks import Bringer, device_name


def bringers(module: Any) -> Iterator[Bringer]:
    """What the hooks on this module bring when it is called."""
    hook = vars(module).get("_hf_hook")
    for each in getattr(hook, "hooks", (hook,)):
        kind = type(each).__name__
        if kind == "AlignDevicesHook" and each.offload:
            device, whole = device_name(each.execution_device), bool(each.place_submodules)
            yield Bringer(f"accelerate.{kind}", device, whole, _keeps(each.weights_map))
        elif kind == "AlignDevicesHook" and each.execution_device is not None:
            device = device_name(each.execution_device)
            yield Bringer(f"accelerate.{kind}", device, False, stays=True)
        elif kind == "CpuOffload":
            yield Bringer(f"accelerate.{kind}", device_name(each.execution_device), True)


def _keeps(weights: Any) -> Callable[[str], str | None]:
    def keeps(key: str) -> str | None:
        return kept_in(weights, key) if weights is None or knows(weights, key) else None

    return keeps


def weights_of(hook: Any, module: Any) -> Iterator[tuple[str, Any]]:
    """What an `AlignDevicesHook` brings and takes away again."""
    whole = bool(hook.place_submodules)
    yield from module.named_parameters(recurse=whole)
    if hook.offload_buffers:
        yield from module.named_buffers(recurse=whole)


def source(model: Any, name: str) -> str:
    """The file that a weight without bytes is read from, "" where it is not in a file."""
    parts = name.split(".")
    for depth in range(len(parts) - 1, -1, -1):
        hook = getattr(model.get_submodule(".".join(parts[:depth])), "_hf_hook", None)
        if (weights := getattr(hook, "weights_map", None)) is not None:
            return kept_in(weights, ".".join(parts[depth:]))
    return ""


def kept_in(weights: Any, key: str) -> str:
    """The file that this map of offloaded weights reads the key from, "" if it is in memory."""
    weights, key = _unprefixed(weights, key)
    info = (getattr(weights, "index", None) or {}).get(key)
    if info is None or key in getattr(weights, "state_dict", ()):
        return ""
    if file := info.get("safetensors_file"):
        return str(os.path.abspath(file))
    folder = getattr(weights, "save_folder", None)
    return os.path.join(os.path.abspath(folder), f"{key}.dat") if folder else ""


def knows(weights: Any, key: str) -> bool:
    """Whether the map has this weight. Asked by `in`, accelerate's maps would read it."""
    weights, key = _unprefixed(weights, key)
    if isinstance(weights, dict):
        return key in weights
    held = [getattr(weights, name, None) for name in ("index", "state_dict")]
    return held == [None, None] or any(key in each for each in held if each is not None)


def path_of_module(weights: Any) -> str:
    """The module whose weights these are, as its model calls it."""
    return _unprefixed(weights, "")[1].rstrip(".")


def _unprefixed(weights: Any, key: str) -> tuple[Any, str]:
    while (prefix := getattr(weights, "prefix", None)) is not None:
        weights, key = weights.dataset, prefix + key
    return weights, key
