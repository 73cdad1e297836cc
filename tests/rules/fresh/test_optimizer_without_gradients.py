"""Optimizers that never get a gradient, and two optimizers for one of two models."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.recorded import runs_without_findings, watched

STARVED, TWINS = "NEW315", "NEW316"
HEAD = """\
import torch
from torch import nn

"""
GAN = """\
maker = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
judge = nn.Sequential(nn.Linear(2, 8), nn.Linear(8, 1))
bce = nn.BCEWithLogitsLoss()
opt_m = torch.optim.Adam(maker.parameters())
opt_j = torch.optim.Adam(judge.parameters())
for _ in range(3):
    real, z = torch.randn(8, 2), torch.randn(8, 4)
    fake = maker(z)
    opt_j.zero_grad()
    (bce(judge(real), torch.ones(8, 1)) + bce(judge(fake.detach()), torch.zeros(8, 1))).backward()
    opt_j.step()
    opt_m.zero_grad()
    loss = bce(judge(fake), torch.ones(8, 1))
    loss.backward()
    opt_m.step()
"""
PLAIN = """\
net = nn.Linear(8, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = net(torch.randn(4, 8)).pow(2).mean()
    loss.backward()
    optimizer.step()
"""


def test_cleared_before_the_step(tmp_path: Path) -> None:
    source = PLAIN.replace("    optimizer.zero_grad()\n", "").replace(
        "    optimizer.step()\n", "    optimizer.zero_grad()  # flagged\n    optimizer.step()\n"
    )
    seen = watched(tmp_path, HEAD + source, STARVED)
    assert "SGD` at program.py:5 has made 3 steps without a gradient for `net`" in (
        seen.only.message
    )
    runs_without_findings(tmp_path, seen.fixed, STARVED)


def test_the_model_clears_them(tmp_path: Path) -> None:
    source = PLAIN.replace("    optimizer.zero_grad()\n", "").replace(
        "    optimizer.step()\n", "    net.zero_grad()  # flagged\n    optimizer.step()\n"
    )
    seen = watched(tmp_path, HEAD + source, STARVED)
    runs_without_findings(tmp_path, seen.fixed, STARVED)


def test_a_maker_trained_on_what_was_detached(tmp_path: Path) -> None:
    source = GAN.replace("fake = maker(z)", "fake = maker(z).detach()  # flagged")
    source = source.replace("fake.detach()", "fake")
    seen = watched(tmp_path, HEAD + source, STARVED)
    assert "for `maker`: the graph ends with `.detach()` at program.py:11" in seen.only.message
    assert "bce(judge(maker(z)), torch.ones" in seen.fixed
    runs_without_findings(tmp_path, seen.fixed, STARVED)


def test_a_loss_that_was_made_to_want_gradients(tmp_path: Path) -> None:
    source = PLAIN.replace(
        "net(torch.randn(4, 8)).pow(2).mean()",
        "net(torch.randn(4, 8)).data.pow(2).mean().requires_grad_()  # flagged",
    )
    seen = watched(tmp_path, HEAD + source, STARVED)
    runs_without_findings(tmp_path, seen.fixed, STARVED)


def test_frozen_parameters_are_a_warning(tmp_path: Path) -> None:
    source = GAN.replace("opt_m =", "maker.requires_grad_(False)  # flagged\nopt_m =")
    seen = watched(tmp_path, HEAD + source, STARVED)
    assert seen.only.severity.value == "warning"
    assert "all its parameters are frozen at program.py:7" in seen.only.message


def test_the_parameters_of_the_other_model(tmp_path: Path) -> None:
    source = GAN.replace("Adam(maker.parameters())", "Adam(judge.parameters())  # flagged")
    seen = watched(tmp_path, HEAD + source, TWINS)
    assert "`maker` gets gradients and is in no optimizer" in seen.only.message
    assert "opt_m = torch.optim.Adam(maker.parameters())" in seen.fixed
    runs_without_findings(tmp_path, seen.fixed, TWINS)


HEALTHY = {
    "a GAN": GAN,
    "plain": PLAIN,
    "steps of a schedule alone": PLAIN.replace("loss.backward()", "pass"),
    "one after the other": PLAIN
    + PLAIN.replace("net = nn.Linear(8, 2)\n", "").replace("SGD", "Adagrad"),
    "a critic that waits": GAN.replace(
        "    opt_j.step()\n", "    if _ > 1:\n        opt_j.step()\n"
    ),
    "a closure": """\
net = nn.Linear(8, 2)
optimizer = torch.optim.LBFGS(net.parameters())
def closure():
    optimizer.zero_grad()
    loss = net(torch.ones(4, 8)).pow(2).mean()
    loss.backward()
    return loss
for _ in range(3):
    optimizer.step(closure)
""",
    "a frozen judge of features": """\
net, features = nn.Linear(8, 2), nn.Linear(2, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = features(net(torch.randn(4, 8))).pow(2).mean()
    loss.backward()
    optimizer.step()
""",
    "its gradients are given by hand": PLAIN.replace(
        "    loss.backward()\n",
        "    grads = torch.autograd.grad(loss, list(net.parameters()))\n"
        "    for weight, grad in zip(net.parameters(), grads):\n        weight.grad = grad\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HEALTHY)
@pytest.mark.parametrize("code", [STARVED, TWINS])
def test_healthy(name: str, code: str, tmp_path: Path) -> None:
    assert not watched(tmp_path, HEAD + HEALTHY[name], code).found


def test_a_loss_that_is_made_of_numbers(tmp_path: Path) -> None:
    source = """net = nn.Linear(8, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    total = net(torch.randn(4, 8)).pow(2).mean().item()  # flagged
    loss = torch.tensor(total, requires_grad=True)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
    told = watched(tmp_path, HEAD + source, STARVED).only
    assert told.message.endswith(
        "the graph ends with `.item()` at program.py:7, and the backward pass begins at a tensor "
        "made anew at program.py:8"
    )
    assert "in place of the tensor that line 8 makes of numbers" in told.fixes[0].description
