"""Small programs for a machine with GPUs: what each must raise there, and what must work.

The sources see `torch`, `F`, `nn`, `np`, `io`, and `G`, `G1` (devices), `here` (ones on the CPU),
`there` (ones on G), `other` (ones on G1), each of shape 3 x 3."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent
from typing import Any

DEVICES = ("cuda:0", "cuda:1")


@dataclass(frozen=True)
class Refused:
    name: str
    source: str
    says: str
    """How the message begins."""
    cause: str = "operands-on-two-devices"
    """The entry of the table of causes that fits it; "" for none."""
    kind: str = "RuntimeError"

    @property
    def devices(self) -> int:
        return 2 if "other" in self.source or "G1" in self.source else 1


@dataclass(frozen=True)
class Legal:
    name: str
    source: str
    """Leaves in `result` what must be the same as without a GPU, by shape, type and value."""

    @property
    def devices(self) -> int:
        return 2 if "other" in self.source or "G1" in self.source else 1


def run(source: str, devices: tuple[str, ...] = DEVICES) -> Any:
    import io

    import numpy as np
    import torch

    here = torch.ones(3, 3)
    names = {
        "torch": torch, "F": torch.nn.functional, "nn": torch.nn, "np": np, "io": io,
        "G": devices[0], "G1": devices[-1], "here": here, "there": here.to(devices[0]),
        "other": here.to(devices[-1]) if "other" in source else None,
    }  # fmt: skip
    exec(compile(dedent(source), "program.py", "exec"), names)
    return names.get("result")
