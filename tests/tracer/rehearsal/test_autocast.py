"""Autocast of a GPU: its own state, its own list of what is narrow and what is wide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch.nn import functional as F

pytestmark = pytest.mark.usefixtures("two_gpus")
HALF = torch.float16


def test_the_state_is_that_of_cuda() -> None:
    with torch.autocast("cuda"):
        assert torch.is_autocast_enabled("cuda")
        assert not torch.is_autocast_enabled("cpu")
        assert torch.get_autocast_dtype("cuda") == HALF
        with torch.autocast("cuda", enabled=False):
            assert not torch.is_autocast_enabled()
    with torch.amp.autocast("cuda", torch.bfloat16):
        assert torch.get_autocast_dtype("cuda") == torch.bfloat16
    assert not torch.is_autocast_enabled("cuda")


def test_the_host_is_left_alone() -> None:
    here, there = torch.ones(2, 2), torch.ones(2, 2, device="cuda")
    with torch.autocast("cuda"):
        assert (here @ here).dtype == torch.float32
        assert (there @ there).dtype == HALF
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert (here @ here).dtype == torch.bfloat16
            assert (there @ there).dtype == HALF
    assert (there @ there).dtype == torch.float32


@pytest.mark.parametrize(("call", "dtype"), [
    (lambda x: F.linear(x.float(), x.float()), HALF),
    (lambda x: F.conv2d(x[None, None].float(), x[None, None].float()), HALF),
    (lambda x: F.scaled_dot_product_attention(x[None].float(), x[None].float(), x[None].float()),
     HALF),
    (lambda x: F.softmax(x, -1), torch.float32),
    (lambda x: F.layer_norm(x, (2,)), torch.float32),
    (lambda x: F.cross_entropy(x, x.long()[0]), torch.float32),
    (lambda x: x.sum(), torch.float32),
    (lambda x: x.exp(), torch.float32),
    (lambda x: x.relu(), HALF),
    (lambda x: x + x.float(), torch.float32),
])  # fmt: skip
def test_what_a_gpu_widens(call: Callable[[Any], Any], dtype: torch.dtype) -> None:
    with torch.autocast("cuda"):
        assert call(torch.ones(2, 2, device="cuda", dtype=HALF)).dtype == dtype


def test_unsafe_losses_are_refused() -> None:
    x = torch.full((2,), 0.5, device="cuda")
    with torch.autocast("cuda"), pytest.raises(RuntimeError, match="unsafe to autocast"):
        F.binary_cross_entropy(x, x)


class Doubled(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)  # type: ignore[untyped-decorator]
    def forward(ctx: Any, x: Any) -> Any:
        assert not torch.is_autocast_enabled("cuda")
        return x * 2

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")  # type: ignore[untyped-decorator]
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * 2


def test_functions_with_types_of_their_own() -> None:
    x = torch.ones(2, device="cuda", dtype=HALF, requires_grad=True)
    with torch.autocast("cuda"):
        y = Doubled.apply(x)
    assert y.dtype == torch.float32
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_a_step_whose_gradients_overflow_is_skipped() -> None:
    weight = torch.nn.Parameter(torch.ones(2, device="cuda"))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    scaler = torch.amp.GradScaler("cuda", init_scale=4.0)
    scaler.scale((weight * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [1, 1]
    assert scaler.get_scale() == 2.0


def test_a_weight_that_was_cast_gets_other_data() -> None:
    layer = torch.nn.Linear(2, 2).to("cuda")
    with torch.autocast("cuda", torch.float16):
        layer(torch.ones(1, 2, device="cuda"))
        layer.to(torch.float16)
        made = layer(torch.ones(1, 2, device="cuda"))
    assert {each.dtype for each in (made, *layer.parameters())} == {torch.float16}


def test_what_only_the_autocast_of_a_cpu_widens_stays_as_given() -> None:
    narrow = torch.ones(1, 2, 4, device="cuda", dtype=torch.bfloat16)
    with torch.autocast("cuda", torch.float16):
        made = [torch.cat([narrow, narrow]), torch.stack([narrow]), F.avg_pool1d(narrow, 2),
                F.pad(narrow, (1, 1), mode="reflect")]  # fmt: skip
    assert {each.dtype for each in made} == {torch.bfloat16}
