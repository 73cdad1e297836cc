"""A fingerprint is two numbers of 64 bits, computed where the tensor lies, in pieces.

Each word of memory is mixed, so that one flipped bit changes many. `loose` is the sum of the mixed
words: it does not depend on their order, and those of parts add up to that of the whole. `exact` is
made of the sums of rows and columns of mixed words, in which each word counts with its place. All
sums are modulo 2**64: one flipped bit changes `loose`, but for one pair of words in 2**63."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

ROWS, COLUMNS = 64, 256
"""Of words, in a piece."""
PIECES_ON_A_GPU = 512
PIECES_ON_A_CPU = 16
"""Worked on together. They stay in its cache, and are enough work to share among its threads."""
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
    numbers = _numbers(data.view(UNITS[unit]))
    return torch.cat([numbers, _finite(flat)]), unit


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


def _sums(words: Tensor) -> tuple[Tensor, Tensor]:
    """For each piece, as a table, the sums of its rows and columns; and the sum of all."""
    count = -(-words.numel() // (ROWS * COLUMNS))
    several = max(1, min(at_once(words), count))
    step = ROWS * COLUMNS * several
    found = torch.empty((count, ROWS + COLUMNS), dtype=torch.int64, device=words.device)
    mixed, moved = (torch.zeros(step, dtype=torch.int64, device=words.device) for _ in range(2))
    for place, start in enumerate(range(0, words.numel(), step)):
        piece = words[start : start + step]
        _mix(piece, mixed[: len(piece)], moved[: len(piece)])
        if len(piece) < step:
            mixed[len(piece) :].zero_()
        table = mixed.view(-1, ROWS, COLUMNS)
        first = place * several
        into = found[first : first + len(table)]
        table = table[: len(into)]
        torch.sum(table, 2, out=into[:, :ROWS])
        torch.sum(table, 1, out=into[:, ROWS:])
    return found.view(-1), found[:, :ROWS].sum()


def at_once(words: Tensor) -> int:
    """How many pieces are worked on together."""
    return PIECES_ON_A_CPU if words.device.type == "cpu" else PIECES_ON_A_GPU


def _mix(piece: Tensor, mixed: Tensor, moved: Tensor) -> None:
    if piece.dtype is torch.int64:
        torch.mul(piece, MIX, out=mixed)
    else:
        mixed.copy_(piece).mul_(MIX)
    torch.bitwise_right_shift(mixed, 32, out=moved)
    mixed.bitwise_xor_(moved)


def _numbers(words: Tensor) -> Tensor:
    """Exact and loose. The sums of pieces are words again, until one piece is left."""
    sums, loose = _sums(words)
    while len(sums) > ROWS + COLUMNS:
        sums, _ = _sums(sums)
    mixed, moved = torch.empty_like(sums), torch.empty_like(sums)
    _mix(sums, mixed, moved)
    return torch.stack([(mixed * _places(words.device)[: len(mixed)]).sum(), loose])


@functools.lru_cache(maxsize=8)
def _places(device: torch.device) -> Tensor:
    """The odd number of each place."""
    numbers = torch.arange(1, ROWS + COLUMNS + 1, dtype=torch.int64, device=device)
    for factor in (MIX, -4658895280553007687, -7723592293110705685):
        numbers = numbers.mul_(factor)
        numbers = numbers.bitwise_xor_(numbers >> 31)
    return numbers.bitwise_or_(1)


def _finite(flat: Tensor) -> Tensor:
    """1, or 0 if a value is NaN or infinite: then a sum is, too. A sum that grew too large is
    taken for one, and the values are counted."""
    worst = torch.zeros(1, dtype=torch.int64, device=flat.device)
    real = torch.view_as_real(flat).view(-1) if flat.is_complex() else flat
    if not real.is_floating_point() or not real.numel():
        return worst + 1
    if real.dtype not in WIDE:
        return torch.isfinite(real.to(torch.float32)).all().to(torch.int64).view(1)
    sums = [piece.sum() for piece in real.split((2 * ROWS * COLUMNS - 8) * at_once(flat))]
    return torch.isfinite(torch.stack(sums)).all().to(torch.int64).view(1)


WIDE = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def _widened(values: Tensor) -> Tensor:
    return values if values.dtype in WIDE or values.is_complex() else values.to(torch.float32)
