"""What a rehearsal costs: one training step of a small transformer, beside plain torch.

    python benchmarks/rehearsal.py [--rounds N] [WIDTH...]

The plain run and the rehearsals compute the same numbers. FakeTensorMode computes none: it stands
beside them because it is the other way to run a GPU's program without one.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn

import tensortrail
from tensortrail.tracer.rehearsal.devices.spec import parse_spec
from tensortrail.tracer.rehearsal.rehearsal import Rehearsal

BATCH, LENGTH = 8, 64


class Block(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.joint, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, n, w = x.shape
        q, k, v = self.joint(self.before(x)).view(b, n, 3, 4, w // 4).permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(b, n, w))
        return x + self.narrow(nn.functional.gelu(self.wide(self.between(x))))


def training(width: int, device: str) -> Callable[[], Any]:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Embedding(1000, width), *(Block(width) for _ in range(4)), nn.Linear(width, 1000)
    )
    if device != "cpu":  # a fake module cannot be moved
        model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    tokens = torch.randint(0, 1000, (BATCH, LENGTH + 1))

    def step() -> Any:
        given = tokens.to(device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(
            model(given[:, :-1]).flatten(0, 1), given[:, 1:].flatten()
        )
        loss.backward()
        optimizer.step()
        return loss

    return step


@contextlib.contextmanager
def recorded() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder, tensortrail.trace(folder, rehearse="cuda"):
        yield


def fake() -> AbstractContextManager[Any]:
    from torch._subclasses.fake_tensor import FakeTensorMode

    mode: AbstractContextManager[Any] = FakeTensorMode()
    return mode


CONTESTANTS: dict[str, tuple[str, Callable[[], AbstractContextManager[Any]]]] = {
    "plain": ("cpu", contextlib.nullcontext),
    "rehearsal": ("cuda", lambda: Rehearsal(parse_spec("cuda"))),
    "rehearsal, recorded": ("cuda", recorded),
    "FakeTensorMode": ("cpu", fake),
}


def measured(width: int, name: str, steps: int) -> tuple[float, float]:
    """CPU seconds of the fastest step, and the last loss."""
    device, make = CONTESTANTS[name]
    with make():
        step = training(width, device)
        step()
        best = float("inf")
        for _ in range(steps):
            begun = time.process_time()
            loss = step()
            best = min(best, time.process_time() - begun)
        return best, 0.0 if name == "FakeTensorMode" else loss.item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("widths", nargs="*", type=int, default=[64, 512], metavar="WIDTH")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for width in options.widths:
        best = dict.fromkeys(CONTESTANTS, float("inf"))
        losses: dict[str, float] = {}
        for _ in range(options.rounds):
            for name in CONTESTANTS:
                seconds, losses[name] = measured(width, name, 5)
                best[name] = min(best[name], seconds)
        for name, seconds in best.items():
            ratio = seconds / best["plain"]
            print(f"width {width:4}  {name:20} {seconds * 1000:8.1f} ms {ratio:6.2f}x")
        assert losses["plain"] == losses["rehearsal"] == losses["rehearsal, recorded"]


if __name__ == "__main__":
    main()
