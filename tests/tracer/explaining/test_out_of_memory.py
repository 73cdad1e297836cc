"""Out of memory: the bytes that were missing, who holds the others, and what makes room."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tensortrail.rules.offload.out_of_memory import room
from tensortrail.rules.shared.refused_memory import shortage
from tensortrail.rules.shared.sizes import memory as told

REAL = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 23.68 GiB of "
    "which 1.20 GiB is free. Including non-PyTorch memory, this process has 22.40 GiB memory in "
    "use. Of the allocated memory 20.00 GiB is allocated by PyTorch, and 1.50 GiB is reserved by "
    "PyTorch but unallocated. If reserved but unallocated memory is large try setting "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
)


def test_what_a_gpu_lacked() -> None:
    lack = shortage(REAL)
    assert lack is not None
    assert lack.device == "cuda:1"
    assert str(lack) == (
        "2.00 GiB on cuda:1, where 1.20 GiB of 23.68 GiB is free: 819.20 MiB is missing"
    )


def test_memory_in_pieces_can_be_joined() -> None:
    lack = shortage(REAL)
    assert lack is not None
    (setting,) = room(None, lack)
    assert (setting.name, setting.value) == (
        "PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True",
    )  # fmt: skip
    assert setting.where == "environment"
    assert "1.50 GiB is reserved in pieces" in setting.why


def test_pieces_that_are_not_enough_are_left() -> None:
    lack = shortage(REAL.replace("1.50 GiB is reserved", "0.50 GiB is reserved"))
    assert lack is not None
    assert not list(room(None, lack))


def test_the_host() -> None:
    lack = shortage("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4096 bytes.")
    assert lack is not None
    assert str(lack) == "4.00 KiB on cpu in one piece"
    assert not list(room(None, lack))


@pytest.mark.parametrize("message", ["", "CUDA error: out of memory", "Tried to allocate it"])
def test_other_messages(message: str) -> None:
    assert shortage(message) is None


@pytest.mark.parametrize(
    ("nbytes", "text"), [(12, "12 bytes"), (2048, "2.00 KiB"), (5 << 40, "5120.00 GiB")]
)
def test_sizes(nbytes: int, text: str) -> None:
    assert told(nbytes) == text
