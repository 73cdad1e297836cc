"""torch.compile: its tracers take simulated tensors apart, so that a rehearsal runs eagerly."""

from __future__ import annotations

import sys
from typing import Any

import torch

from tensortrail.tracer.rehearsal.replacements import Replacements

SAID = (
    "tensortrail: torch.compile is not rehearsed: what it would compile for the GPU runs eagerly "
    "here.\n"
)


def install(replaced: Replacements) -> None:
    compile_ = torch.compile
    said: list[str] = []

    def compiled(*args: Any, **kwargs: Any) -> Any:
        if not said:
            said.append(SAID)
            sys.stderr.write(SAID)
            _run_eagerly(replaced)
        return compile_(*args, **kwargs)

    replaced.put(torch, "compile", compiled)
    if "torch._dynamo" in sys.modules:  # something may be compiled already
        _run_eagerly(replaced)


def _run_eagerly(replaced: Replacements) -> None:
    from torch._dynamo import eval_frame

    if eval_frame._stance.stance == "default":
        replaced.put(eval_frame, "_stance", eval_frame.DynamoStance("force_eager"))
