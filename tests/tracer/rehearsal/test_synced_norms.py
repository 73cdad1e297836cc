"""Batch norm over two GPUs: the formulas for its kernels agree with batch norm of the whole."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tensortrail.tracer.rehearsal.operations.synced_norms import (  # noqa: E402
    gathered_with_counts,
    normalized,
    normalized_backward,
    reduced_backward,
    stats,
)

EPS, MOMENTUM = 1e-5, 0.1


@pytest.mark.parametrize("affine", [True, False])
def test_two_parts_are_normalized_as_one(affine: bool) -> None:
    torch.manual_seed(0)
    whole = torch.nn.BatchNorm2d(3, affine=affine).double()
    given = torch.randn(5, 3, 4, 2, dtype=torch.float64, requires_grad=True)
    grad = torch.randn_like(given)
    expected = whole(given)
    expected.backward(grad)
    parts, grads = (list(each.detach().split([2, 3])) for each in (given, grad))
    means, inverses = map(torch.stack, zip(*(stats(part, EPS) for part in parts), strict=True))
    counts = torch.tensor([16, 24])
    running = torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
    mean, inverse = gathered_with_counts(parts[0], means, inverses, *running, MOMENTUM, EPS, counts)
    torch.testing.assert_close(running, (whole.running_mean, whole.running_var))
    weight, bias = whole.weight, whole.bias
    found = [normalized(part, weight, bias, mean, inverse, EPS) for part in parts]
    torch.testing.assert_close(torch.cat(found), expected)
    sums = [
        reduced_backward(up, part, mean, inverse, weight, True, True, True)
        for up, part in zip(grads, parts, strict=True)
    ]
    total, with_values, of_weight, of_bias = (sum(each) for each in zip(*sums, strict=True))
    back = [
        normalized_backward(up, part, mean, inverse, weight, total, with_values, counts)
        for up, part in zip(grads, parts, strict=True)
    ]
    torch.testing.assert_close(torch.cat(back), given.grad)
    if affine:
        torch.testing.assert_close((of_weight, of_bias), (weight.grad, bias.grad))
