"""Activations that a hook of the program takes elsewhere, and gives back where they are."""

from __future__ import annotations

from typing import Any

from tensortrail.tracer.identity.sites import OURS, OWNERS, Place
from tensortrail.tracer.identity.storages import Storages
from tensortrail.tracer.noticing.escaped.told import at, frames_of, told

HOOKS: list[Place] = []
"""Where the functions of the program that give activations back are defined."""
BACKWARD = ("torch/_tensor.py", "torch/autograd/__init__.py", "torch/autograd/graph.py")


def hooked_activation(error: BaseException, _: Storages) -> dict[str, Any] | None:
    """The engine itself raised: no function of the program ran in the backward pass."""
    if not HOOKS or "same device" not in str(error) or not isinstance(error, RuntimeError):
        return None
    files = [frame.f_code.co_filename for frame in frames_of(error)]
    theirs = [file for file in files if OWNERS[file] != OURS]
    if not theirs or not theirs[-1].endswith(BACKWARD):
        return None
    file, line, name = HOOKS[-1]
    return told(
        f"the backward pass was given tensors of two devices: `{name}`{at(file, line)}, a hook of "
        "`saved_tensors_hooks`, gives activations back on another device than they had",
        f"move them back in `{name}`: keep the device beside the tensor, and give "
        "`tensor.to(device)` back",
    )
