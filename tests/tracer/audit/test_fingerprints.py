"""Fingerprints are equal for equal bits, wherever and however these lie, and for no others."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("torch")

import torch
from torch import Tensor

from tensortrail.tracer.audit import fingerprints
from tensortrail.tracer.audit.fingerprints import fingerprint_of

DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn,
    torch.complex64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
]  # fmt: skip


def some(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_layouts(dtype: torch.dtype) -> None:
    whole = some(6, 10).to(dtype)
    told = fingerprint_of(whole)
    padded = torch.zeros(6, 13).to(dtype)
    padded[:, 3:] = whole
    for same in (whole.clone(), whole.t().contiguous().t(), padded[:, 3:]):
        assert fingerprint_of(same) == told
    other = fingerprint_of(whole.flip(0))
    assert (other.exact, other.loose) != (told.exact, told.loose) or dtype is torch.bool
    assert other.loose == told.loose, "the order does not count there"


def test_bits_that_numbers_do_not_show() -> None:
    assert fingerprint_of(torch.tensor([0.0])) != fingerprint_of(torch.tensor([-0.0]))
    quiet = torch.tensor([0x7FC00000, 0x7FC00001], dtype=torch.int32)
    one, two = quiet.view(torch.float32), (quiet + 1).view(torch.float32)
    assert one.isnan().all()
    assert two.isnan().all()
    assert fingerprint_of(one).exact != fingerprint_of(two).exact
    assert fingerprint_of(one).unfinite == 2


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("dim", [0, 1])
def test_the_sums_of_parts_add_up(ranks: int, dim: int) -> None:
    whole = some(64, 64).to(torch.bfloat16)
    parts = [fingerprint_of(part.clone()) for part in whole.chunk(ranks, dim)]
    assert sum(part.loose for part in parts) % 2**64 == fingerprint_of(whole).loose


def test_large_tensors_in_pieces() -> None:
    """The order of pieces counts as well."""
    piece = fingerprints.ROWS * fingerprints.COLUMNS
    whole = some(piece * 10 + 6)
    told = fingerprint_of(whole)
    other = fingerprint_of(
        torch.cat([whole[4 * piece : 8 * piece], whole[: 4 * piece], whole[8 * piece :]])
    )
    assert other.loose == told.loose
    assert other.exact != told.exact
    assert told.unfinite == 0
    whole[-1] = float("inf")
    assert fingerprint_of(whole).unfinite == 1


def test_several_pieces_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU. The last are padded there."""
    tensors = [
        some(fingerprints.ROWS * fingerprints.COLUMNS * 10 + 7),
        some(5),
        some(0),
        torch.tensor(1.5),
    ]
    told = [fingerprint_of(each) for each in tensors]
    monkeypatch.setattr(fingerprints, "at_once", lambda words: 3)
    assert [fingerprint_of(each) for each in tensors] == told


def test_numbers_do_not_depend_on_threads() -> None:
    piece = fingerprints.ROWS * fingerprints.COLUMNS
    tensors = [some(length) for length in (5, piece * 2, piece * 35 + 6)]
    before = torch.get_num_threads()
    told = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            told.append([fingerprint_of(each) for each in tensors])
    finally:
        torch.set_num_threads(before)
    assert told[0] == told[1]


def flipped(trials: int) -> int:
    """How many of them nobody noticed."""
    chosen = random.Random(0)
    whole = some(40, 16).to(torch.bfloat16)
    told, memory = fingerprint_of(whole), whole.view(torch.uint8).view(-1)
    missed = 0
    for _ in range(trials):
        place, bit = chosen.randrange(len(memory)), 1 << chosen.randrange(8)
        memory[place] ^= bit
        now = fingerprint_of(whole)
        missed += now.exact == told.exact or now.loose == told.loose
        memory[place] ^= bit
    return missed


def test_one_flipped_bit() -> None:
    assert flipped(300) == 0


@pytest.mark.complete
def test_one_flipped_bit_in_ten_thousand_trials() -> None:
    assert flipped(10_000) == 0


def test_flipped_signs() -> None:
    """The highest bits of words, which a plain sum would lose in pairs."""
    whole = some(32, 32)
    assert fingerprint_of(-whole).exact != fingerprint_of(whole).exact
    assert fingerprint_of(-whole).loose != fingerprint_of(whole).loose
    pair = whole.clone()
    pair[0, 1], pair[3, 5] = -pair[0, 1], -pair[3, 5]
    assert fingerprint_of(pair).exact != fingerprint_of(whole).exact
