"""The libraries that a program had loaded, with their versions."""

from __future__ import annotations

import sys

NAMES = (
    "transformers", "accelerate", "diffusers", "peft", "torchao", "safetensors", "bitsandbytes",
    "deepspeed", "transformer_engine", "torch_tensorrt", "lightning", "torchvision", "numpy",
)  # fmt: skip


def loaded_versions() -> dict[str, str]:
    found = {name: vars(sys.modules[name]).get("__version__") for name in NAMES
             if name in sys.modules}  # fmt: skip
    return {name: version for name, version in found.items() if isinstance(version, str)}
