"""The libraries that a program had loaded, with their versions."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

NAMES = (
    "transformers", "accelerate", "diffusers", "peft", "torchao", "safetensors", "bitsandbytes",
    "deepspeed", "transformer_engine", "torch_tensorrt", "lightning", "torchvision", "numpy",
)  # fmt: skip


def loaded_versions() -> dict[str, str]:
    found = {name: _version(vars(sys.modules[name])) for name in NAMES if sys.modules.get(name)}
    return {name: version for name, version in found.items() if isinstance(version, str)}


def _version(names: Mapping[str, Any]) -> Any:
    """Modules that import their parts late keep what they have already beside themselves."""
    late = names.get("_objects")
    return names.get("__version__") or (late.get("__version__") if type(late) is dict else None)
