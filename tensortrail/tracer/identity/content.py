"""What a batch holds, as a number: two that are alike have the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from zlib import crc32

import torch
from torch._C import DisableTorchFunction

from tensortrail.tracer.identity.object_attributes import attributes_of

DEEPEST, MOST_PARTS, MOST_VALUES = 6, 256, 4096


def content(batch: Any) -> int:
    """Of its first tensors, texts and numbers; 0 if none is seen in it."""
    found = 0
    with DisableTorchFunction():
        for count, each in enumerate(_parts(batch, DEEPEST)):
            if count == MOST_PARTS:
                break
            found = crc32(each, found)
    return found


def _parts(value: Any, depth: int) -> Iterator[bytes]:
    if type(value) in (int, float, str, bytes, bool):
        yield repr(value).encode()
    elif type(value) is torch.Tensor:
        yield _bytes_of(value)
    elif type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
        yield value.tobytes()[:MOST_VALUES]
    elif depth:
        for each in _inside(value):
            yield from _parts(each, depth - 1)


def _inside(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return list(value)[:MOST_PARTS]
    if type(value) is dict:
        return [each for item in list(value.items())[:MOST_PARTS] for each in item]
    return [each for _, each in attributes_of(value)]


def _bytes_of(tensor: torch.Tensor) -> bytes:
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
        return b""
    first = tensor.detach().flatten()[:MOST_VALUES].contiguous()
    return first.view(torch.uint8).numpy().tobytes() if first.numel() else b""
