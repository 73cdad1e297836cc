"""A rehearsed model that moves between forward and backward, and hooks of what moves."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

pytestmark = pytest.mark.usefixtures("two_gpus")


@pytest.mark.parametrize(("here", "there"), [("cpu", "cuda"), ("cuda", "cpu"), ("cuda", "cuda:1")])
def test_the_gradient_of_an_older_graph_comes_to_the_weight_that_moved(
    here: str, there: str
) -> None:
    net, given = nn.Linear(3, 1).to(here), torch.arange(3.0).view(1, 3).to(here)
    weight, loss = net.weight, net(given).sum()
    net.to(there)
    loss.backward()
    assert net.weight is weight
    assert weight.grad.device.type == torch.device(here).type
    assert weight.grad.tolist() == [[0.0, 1.0, 2.0]]


def test_a_gradient_that_moved_takes_none_of_another_device() -> None:
    net = nn.Linear(3, 1)
    net(torch.ones(1, 3)).sum().backward()
    loss = net(torch.ones(1, 3)).sum()
    net.cuda()
    with pytest.raises(RuntimeError, match="at least two devices, cuda:0 and cpu!"):
        loss.backward()


def test_a_second_pass_goes_to_the_weight_alone() -> None:
    net = nn.Linear(3, 1)
    loss = net(torch.ones(1, 3)).sum()
    net.cuda()
    loss.backward(retain_graph=True)
    loss.backward()
    assert net.weight.grad.tolist() == [[2.0, 2.0, 2.0]]


def test_hooks_stay_with_what_moves() -> None:
    seen: list[Any] = []
    weight = nn.Parameter(torch.ones(2))
    weight.register_hook(lambda gradient: seen.append(str(gradient.device)))
    weight.register_post_accumulate_grad_hook(lambda each: seen.append(each is weight))
    before = (weight * 2).sum()
    weight.data = weight.data.cuda()
    (weight * 2).sum().backward()
    assert seen == ["cuda:0", True]
    weight.grad = None
    before.backward()
    assert seen[2:] == ["cpu", True]


@pytest.mark.parametrize("device", ["cpu:1", "cpu:7", torch.device("cpu", 3)])
def test_a_numbered_device_of_the_host_is_the_host(device: Any) -> None:
    moved = torch.ones(2, device="cuda").to(device)
    made = torch.zeros(2, device=device)
    assert (str(moved.device), str(made.device), (moved + made).tolist()) == ("cpu", "cpu", [1, 1])
    assert str(nn.Linear(2, 2).cuda().to(device).weight.device) == "cpu"
