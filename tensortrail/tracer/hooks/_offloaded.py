"""Where the weights of a model that accelerate offloaded are kept."""

from __future__ import annotations

import os
from typing import Any


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


def path_of_module(weights: Any) -> str:
    """The module whose weights these are, as its model calls it."""
    return _unprefixed(weights, "")[1].rstrip(".")


def _unprefixed(weights: Any, key: str) -> tuple[Any, str]:
    while (prefix := getattr(weights, "prefix", None)) is not None:
        weights, key = weights.dataset, prefix + key
    return weights, key
