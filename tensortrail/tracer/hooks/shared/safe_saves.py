"""A save of plain tensors in plain containers to a file, or to a stream that torch made around one,
runs no code but torch's, and all there is to tell of it is told before.

The mode is off meanwhile: it would see some ten calls a tensor."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import torch
from torch._C import DisableTorchFunction

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.identity.inner_tensors import PLAIN

DEEPEST = 12
LEAVES = {
    str, int, float, bool, bytes, complex, type(None), torch.Size, torch.dtype, torch.device,
}  # fmt: skip


def saves_only_plain(
    recorder: Recorder, data: Any, path: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> bool:
    """Whether `torch.save` with these arguments asks nobody of the program's for anything."""
    return (
        recorder.short_ways
        and recorder.of_thread.lower is None
        and len(args) + len(kwargs) == 2
        and (type(path) is str or isinstance(path, Path) or _is_torch_s_own(path))
        and _consists_of_plain(data)
    )


def _is_torch_s_own(stream: Any) -> bool:
    return type(stream).__module__.startswith("torch.")


def _consists_of_plain(data: Any) -> bool:
    with DisableTorchFunction():  # nobody else need see the questions
        return _is_plain(data, 0)


def _is_plain(data: Any, depth: int) -> bool:
    kind = type(data)
    if kind in PLAIN:
        return not vars(data) and data.layout is torch.strided
    if kind is dict or kind is OrderedDict:
        values = [*data.values(), *vars(data).values()] if kind is OrderedDict else data.values()
        return LEAVES.issuperset(map(type, data)) and _are_plain(values, depth)
    if kind is list or kind is tuple:
        return _are_plain(data, depth)
    return kind in LEAVES


def _are_plain(values: Any, depth: int) -> bool:
    return depth < DEEPEST and all(_is_plain(each, depth + 1) for each in values)
