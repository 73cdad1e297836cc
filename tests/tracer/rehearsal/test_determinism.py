"""`torch.use_deterministic_algorithms(True)`: what a GPU has a deterministic kernel for works."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402
from torch.nn import functional as F  # noqa: E402

pytestmark = pytest.mark.usefixtures("two_gpus")


@pytest.fixture
def strict() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


WORKS: list[Callable[[Tensor], Tensor]] = [
    lambda x: x @ x,
    lambda x: F.conv2d(x[None, None], x[None, None]),
    lambda x: F.interpolate(x[None, None], size=9, mode="bilinear"),
    lambda x: F.interpolate(x[None, None, None], size=9, mode="trilinear"),
    lambda x: F.pad(x[None, None], (1, 1, 1, 1), mode="replicate"),
    lambda x: F.max_pool3d(x[None, None], (1, 2, 2)),
    lambda x: F.nll_loss(x, torch.zeros(4, dtype=torch.int64, device=x.device)),
    lambda x: x.median(),
    lambda x: x.index_add(0, torch.tensor([0, 0], device=x.device), x[:2]),
    lambda x: x.scatter_reduce(0, torch.zeros_like(x, dtype=torch.int64), x, "sum"),
    lambda x: x.kthvalue(2).values,
    lambda x: torch.cumsum(torch.tensor([1, 2], device=x.device), 0) * x.sum(),
]


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("use", WORKS)
def test_deterministic_kernels_work(use: Callable[[Tensor], Tensor]) -> None:
    x = torch.rand(4, 4)
    plain, there = x.clone().requires_grad_(), x.cuda().requires_grad_()
    expected, found = use(plain), use(there)
    torch.testing.assert_close(found.cpu(), expected)
    expected.sum().backward()
    found.sum().backward()
    torch.testing.assert_close(there.grad.cpu(), plain.grad)


@pytest.mark.usefixtures("strict")
def test_the_cpu_may_do_what_a_gpu_may_not() -> None:
    assert torch.cumsum(torch.ones(3), 0).tolist() == [1, 2, 3]
    with pytest.raises(RuntimeError, match="cumsum_cuda_kernel"):
        torch.cumsum(torch.ones(3, device="cuda"), 0)


def test_a_warning_alone_if_that_is_wanted() -> None:
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with pytest.warns(UserWarning, match="cumsum_cuda_kernel does not have a deterministic"):
            assert torch.cumsum(torch.ones(3, device="cuda"), 0).tolist() == [1, 2, 3]
    finally:
        torch.use_deterministic_algorithms(False)
