"""Operations that a GPU computes in types the CPU has no kernel for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tensortrail.tracer.rehearsal.spec import Spec  # noqa: E402
from tensortrail.tracer.rehearsal.stage import Rehearsal  # noqa: E402


@pytest.fixture(autouse=True)
def _on_a_simulated_device() -> Iterator[None]:
    with Rehearsal(Spec()):
        yield


def test_counting_integers_works_as_on_a_gpu() -> None:
    counted = torch.histc(torch.tensor([0, 1, 1, 3], device="cuda", dtype=torch.int32), 4, 0, 3)
    assert counted.tolist() == [1, 2, 0, 1]
    assert counted.dtype == torch.int32
    assert counted.is_cuda


def test_the_cpu_alone_still_refuses_to() -> None:
    with pytest.raises(NotImplementedError, match="not implemented for 'Int'"):
        torch.histc(torch.tensor([0, 1], dtype=torch.int32), 4, 0, 3)


def test_half_precision_has_every_kernel() -> None:
    values = torch.tensor([0.5, 2.0], device="cuda", dtype=torch.float16)
    assert torch.linalg.norm(torch.linalg.inv(torch.diag(values).float())).is_cuda
    assert torch.histc(values, 2, 0, 3).dtype == torch.float16


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_what_is_written_in_place_is_written_into_the_same_memory(dtype: Any) -> None:
    values = torch.zeros(2, device="cuda", dtype=dtype)
    view = values[:]
    torch.histc(torch.tensor([0.0, 1.0, 1.0], device="cuda", dtype=dtype), 2, 0, 1, out=values)
    assert view.tolist() == [1, 2]


def test_copying_with_a_conversion_in_one_call() -> None:
    values = torch.ones(2, device="cuda")
    copied = values.to(copy=True, dtype=torch.float32, device=values.device)
    assert copied is not values
    assert copied.data_ptr() != values.data_ptr()
    assert values.to("cuda", torch.float32, False, True) is not values
    assert values.to(torch.float32, False, True) is not values
    assert values.to(torch.float32, False) is values
