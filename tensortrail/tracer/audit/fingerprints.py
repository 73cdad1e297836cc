"""A fingerprint is two numbers of 64 bits, computed where the tensor lies, in pieces.

Each word of memory is mixed, so that one flipped bit changes many. `loose` is the sum of the mixed
words: it does not depend on their order, and those of parts add up to that of the whole. `exact` is
the sum of the mixed words, each multiplied by the odd number of its place. Both are sums modulo
2**64: one changed word always changes both, however the memory is laid out or split."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

WORDS = 1 << 15
"""In a piece. Pieces of this size stay in the cache of a CPU while they are worked on."""
WORDS_ON_A_GPU = 1 << 24
MIX = -7046029254386353131
"""0x9E3779B97F4A7C15 as torch takes it."""
UNITS = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.uint8}


class Fingerprint(NamedTuple):
    exact: int
    loose: int
    unit: int
    """Bytes in a word. `loose` of two tensors can be compared if this is the same."""
    unfinite: int
    """How many values are NaN or infinite; -1 if that is not known of this type."""

    @property
    def text(self) -> str:
        return f"{self.exact:016x}{self.loose:016x}"


@contextmanager
def undisturbed() -> Iterator[None]:
    """Nobody sees the work: no mode of torch's functions, and no gradients."""
    with torch._C.DisableTorchFunction(), torch.no_grad():
        yield


def started(tensor: Tensor) -> tuple[Tensor, int]:
    """The numbers as a tensor of int64 on the device of the values, not waited for: exact, loose
    and a sum that is not finite if any value is not; and the bytes in a word."""
    whole = tensor.detach().resolve_conj().resolve_neg()
    row = whole.shape[-1] if whole.dim() else 1
    flat = whole.contiguous().view(-1)
    if flat.is_complex():
        flat = torch.view_as_real(flat).view(-1)
    unit = next(each for each in UNITS if row * whole.element_size() % each == 0)
    data = flat.view(torch.uint8)
    if data.storage_offset() % unit:
        data = data.clone()
    sums = _sums(data.view(UNITS[unit]))
    return torch.cat([_total(sums), _finite(flat)]), unit


def finished(numbers: list[int], unit: int, tensor: Tensor) -> Fingerprint:
    exact, loose, finite = numbers
    unfinite = 0 if tensor.is_floating_point() or tensor.is_complex() else -1
    if not finite:
        with undisturbed():
            flat = _widened(tensor.detach())
            unfinite = int(flat.numel() - torch.isfinite(flat).sum())
    return Fingerprint(exact % 2**64, loose % 2**64, unit, unfinite)


def fingerprint_of(tensor: Tensor) -> Fingerprint:
    """Of one tensor with memory of its own."""
    with undisturbed():
        numbers, unit = started(tensor)
        return finished(numbers.tolist(), unit, tensor)


def _sums(words: Tensor) -> Tensor:
    """Exact and loose of each piece."""
    size = WORDS if on_a_cpu(words) else WORDS_ON_A_GPU
    places = _places(words.device, min(size, max(words.numel(), 1)), size)
    pieces = max(1, -(-words.numel() // WORDS))
    sums = torch.zeros((2, pieces), dtype=torch.int64, device=words.device)
    mixed, moved = (torch.empty_like(places) for _ in range(2))
    for start in range(0, words.numel(), size):
        piece = words[start : start + size]
        one, two = mixed[: len(piece)], moved[: len(piece)]
        torch.mul(piece, MIX, out=one) if piece.dtype is torch.int64 else one.copy_(piece).mul_(MIX)
        torch.bitwise_right_shift(one, 32, out=two)
        one.bitwise_xor_(two)
        first, last = start // WORDS, -(-(start + len(piece)) // WORDS)
        if on_a_cpu(words):
            sums[0, first] = torch.dot(one, places[: len(piece)])
            sums[1, first] = one.sum()
        else:  # several pieces of a CPU's size at once, so that both give the same numbers
            torch.mul(one, places[: len(piece)], out=two)
            for row, part in enumerate((two, one)):
                even = len(piece) // WORDS
                torch.sum(part[: even * WORDS].view(even, WORDS), 1, out=sums[row, first:][:even])
                if len(piece) % WORDS:
                    torch.sum(part[even * WORDS :], 0, out=sums[row, last - 1])
    return sums


def on_a_cpu(words: Tensor) -> bool:
    """It has a cache for small pieces; others do best on large ones."""
    return bool(words.device.type == "cpu")


def _total(sums: Tensor) -> Tensor:
    """The place of a piece counts as well; the loose sums only add up."""
    exact = sums[0]
    while len(exact) > 1:
        exact = _sums(exact)[0]
    return torch.stack([exact[0], sums[1].sum()])


@functools.lru_cache(maxsize=8)
def _places(device: torch.device, count: int, size: int) -> Tensor:
    """The odd number of each place. It starts again with each piece."""
    numbers = torch.arange(1, min(count, WORDS) + 1, dtype=torch.int64, device=device)
    for factor in (MIX, -4658895280553007687, -7723592293110705685):
        numbers = numbers.mul_(factor)
        numbers = numbers.bitwise_xor_(numbers >> 31)
    numbers = numbers.bitwise_or_(1)
    return numbers.repeat(-(-count // WORDS))[:count]


def _finite(flat: Tensor) -> Tensor:
    """1, or 0 if there may be a value that is not finite."""
    if not flat.is_floating_point() or not flat.numel():
        return torch.ones(1, dtype=torch.int64, device=flat.device)
    wide = flat if flat.dtype in WIDE else _widened(flat)
    return torch.isfinite(wide.sum()).to(torch.int64).view(1)


WIDE = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def _widened(values: Tensor) -> Tensor:
    return values if values.dtype in WIDE or values.is_complex() else values.to(torch.float32)
