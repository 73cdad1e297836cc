"""What a simulated device holds, counted by hand beside it."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

from tensortrail.tracer.rehearsal.devices.spec import parse_spec
from tensortrail.tracer.rehearsal.rehearsal import Rehearsal

MIB = 1 << 20


@pytest.fixture(autouse=True)
def _small_gpus() -> Iterator[None]:
    with Rehearsal(parse_spec("cuda:2x64MiB")):
        yield


def held(device: int = 0) -> int:
    gc.collect()
    return int(torch.cuda.memory_allocated(device))


def test_blocks_of_512_bytes() -> None:
    kept = [torch.ones(size, device="cuda") for size in (1, 128, 129)]
    assert held() == 512 + 512 + 1024
    del kept[2]
    assert held() == 1024
    assert torch.cuda.max_memory_allocated() == 2048


def test_views_share_and_copies_do_not() -> None:
    table = torch.zeros(1024, 256, device="cuda")
    views = [table[:10], table.t(), table.view(-1), table.detach(), nn.Parameter(table), table.data]
    assert held() == MIB
    copied = table.clone()
    assert held() == 2 * MIB
    del table, views
    assert held() == MIB
    assert copied.is_cuda


def test_each_device_counts_its_own() -> None:
    first = torch.zeros(MIB // 4, device="cuda:0")
    second = first.to("cuda:1")
    assert (held(0), held(1)) == (MIB, MIB)
    first = first.cpu()
    assert (held(0), held(1)) == (0, MIB)
    assert second.device.index == 1


def test_a_storage_resized_in_place() -> None:
    weight = torch.ones(MIB // 4, device="cuda")
    weight.untyped_storage().resize_(0)
    assert held() == 0
    weight.untyped_storage().resize_(MIB)
    assert held() == MIB


def test_the_peak_of_a_training_step() -> None:
    """Weights 4 MiB, gradient 4, two moments 4 each, the input and output 4 KiB each, and at the
    peak one more list of results of the optimizer's foreach kernels."""
    layer = nn.Linear(1024, 1024, bias=False, device="cuda")
    optimizer = torch.optim.Adam(layer.parameters(), foreach=True)
    assert held() == 4 * MIB
    loss = layer(torch.ones(1, 1024, device="cuda")).sum()
    before = held()
    assert before == 4 * MIB + 4096 + 512  # the input is saved for backward; the loss
    loss.backward()
    assert held() == 8 * MIB + 512
    torch.cuda.reset_peak_memory_stats()
    optimizer.step()
    assert held() == 16 * MIB + 512  # the steps are counted on the host
    assert torch.cuda.max_memory_allocated() == 20 * MIB + 512
    optimizer.zero_grad(set_to_none=True)
    assert held() == 12 * MIB + 512


def test_activations_are_freed_by_backward_and_checkpoints() -> None:
    layers = nn.Sequential(*(nn.Tanh() for _ in range(8)))
    given = torch.ones(MIB // 4, device="cuda", requires_grad=True)
    result = layers(given)
    assert held() == 9 * MIB  # every tanh keeps its result
    result.sum().backward()
    del result
    assert held() == 2 * MIB  # the input and its gradient
    given.grad = None
    again = torch.utils.checkpoint.checkpoint_sequential(layers, 2, given, use_reentrant=False)
    assert held() <= 6 * MIB  # segments keep what goes into them; the last one all
    assert again.is_cuda


def test_too_much_is_refused_in_the_words_of_cuda() -> None:
    model = nn.Linear(2048, 4096, bias=False, device="cuda")
    with pytest.raises(torch.OutOfMemoryError) as caught:
        [torch.ones(8 * MIB // 4, device="cuda") for _ in range(9)]
    said = str(caught.value)
    assert said.startswith(
        "CUDA out of memory. Tried to allocate 8.00 MiB. GPU 0 has a total capacity of 64.00 MiB "
        "of which 0 bytes is free."
    )
    assert "32.00 MiB  float32 4096x2048" in said
    assert "32.00 MiB  4 x float32 2097152" in said
    del caught
    assert held() == 32 * MIB
    assert torch.ones(8 * MIB // 4, device="cuda").is_cuda  # what was freed can be used again
    assert torch.cuda.memory_stats()["num_ooms"] == 1
    assert model.weight.is_cuda


@pytest.mark.parametrize("ask", [
    lambda: torch.zeros(65 * MIB, dtype=torch.uint8).cuda(),
    lambda: torch.empty(65 * MIB, dtype=torch.uint8, device="cuda:0"),
    lambda: torch.ones(40 * MIB // 4, device="cuda") + 1,
    lambda: nn.Linear(4096, 4100).to("cuda"),
])  # fmt: skip
def test_every_way_to_ask_for_too_much(ask: object) -> None:
    with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
        ask()  # type: ignore[operator]
    assert held() < 64 * MIB


def test_a_fraction_of_the_memory() -> None:
    torch.cuda.set_per_process_memory_fraction(0.25)
    with pytest.raises(torch.OutOfMemoryError):
        torch.ones(5 * MIB, device="cuda")
    assert torch.cuda.mem_get_info() == (64 * MIB, 64 * MIB)  # the driver knows of no fraction
