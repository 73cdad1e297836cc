"""The same program with and without a recording, and what it may not change."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from tensortrail.tracer.recording import session
from tensortrail.tracer.recording.begin import begin


@contextmanager
def recorded(directory: Path) -> Iterator[session.Session]:
    """A recording that must not have had a fault of its own."""
    running = begin(directory)
    try:
        yield running
    finally:
        running.stop()
    assert not running.trouble, running.trouble


def outcome(program: Callable[[], Any]) -> Any:
    """What it gives or raises, with the same random numbers each time."""
    torch.manual_seed(0)
    random.seed(0)
    try:
        return program()
    except Exception as error:
        return told(error)


class Failure(tuple[Any, ...]):
    """An exception: its type first."""


def told(error: BaseException | None) -> Any:
    """All that a program can see of an exception, but where it was raised."""
    if error is None:
        return None
    notes = getattr(error, "__notes__", [])
    shown = error.__suppress_context__
    chain = (told(error.__cause__), told(error.__context__))
    return Failure((type(error), error.args, str(error), notes, shown, *chain))


def same(a: Any, b: Any) -> bool:
    """Equal in type and value, tensors bit for bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        return same_tensor(a, b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def same_tensor(a: torch.Tensor, b: torch.Tensor) -> bool:
    looks = [
        (t.dtype, t.device, t.shape, t.layout, t.requires_grad, t.is_leaf, t.is_inference())
        for t in (a, b)
    ]
    if looks[0] != looks[1]:
        return False
    if a.layout is not torch.strided:
        return same_tensor(a.detach().to_dense(), b.detach().to_dense())
    if a.device.type == "meta":
        return bool(a.stride() == b.stride())
    if a.is_quantized:
        return bool(torch.equal(a, b))
    plain = [t.detach().resolve_conj().resolve_neg().flatten().clone() for t in (a, b)]
    left, right = (t.as_strided(t.shape, (1,)).view(torch.uint8) if t.numel() else t for t in plain)
    return bool(torch.equal(left, right))


def same_twice(program: Callable[[], Any], directory: Path) -> Any:
    """Run it without and with a recording, and again after it; give what it gave."""
    before = outcome(program)
    with recorded(directory):
        during = outcome(program)
    after = outcome(program)
    assert same(before, during), f"{before} became {during}"
    assert same(before, after), f"{before} became {after} after the recording"
    return before
