"""DEV510, `ambient-current-device`: which devices are at hand where a GPU is written out."""

from __future__ import annotations

import pytest

from tests.rules.judged import findings

_NORM = """
import torch

def norm(grads, group, kind):
    if kind == "max":
        total = torch.tensor([max(g.max() for g in grads)], device="cuda")
        group.reduce(total)
    else:
        {other}
        group.reduce(total)
    return total
"""


@pytest.mark.parametrize(
    ("other", "lines"),
    [
        ("total = torch.tensor(2.0, device=grads[0].device)", [6]),
        ("total = sum(grads).to(grads[0].device)", []),  # makes nothing there
        ("grads = [g.cuda() for g in grads]; total = torch.ones(1, device=grads[0].device)", []),
        ("last = grads[0]; total = torch.tensor(2.0, device=last.device)", []),  # bound later
        ("total = torch.tensor(2.0, device=torch.device('cuda'))", []),
    ],
)
def test_the_device_of_a_tensor(other: str, lines: list[int]) -> None:
    found = findings("DEV510", _NORM.format(other=other))
    assert [each.site.line for each in found] == lines


def test_a_tensor_on_a_gpu_beside_that_of_another() -> None:
    source = """
import torch

def scaled(scales):
    flag = torch.tensor([0], device="cuda")
    return flag, torch.empty(3, device=scales[0].device)
"""
    assert not findings("DEV510", source)


@pytest.mark.parametrize(
    ("imported", "asked", "count"),
    [
        ("from app import devices", "devices.get_torch_device()", 1),
        ("import app.devices as devices", "devices.get_torch_device()", 1),
        ("from app.devices import get_torch_device", "get_torch_device()", 1),
        ("from app import devices", "devices.chosen()", 0),
        ("import torch.cuda as devices", "devices.current_device()", 0),
        ("devices = object()", "devices.get_torch_device()", 0),
    ],
)
def test_a_helper_of_another_file(imported: str, asked: str, count: int) -> None:
    source = f"""
import torch
{imported}

def place(model):
    return model.to({asked})

def merged(model, path):
    return merge(model, path, device="cuda")
"""
    assert len(findings("DEV510", source)) == count


@pytest.mark.parametrize(
    ("put", "told"),
    [("x.to(self.device)", True), ("x + 1", False), ("y.cuda().exp().to(self.device)", False)],
)
def test_its_own_device_that_the_function_uses_too(put: str, told: bool) -> None:
    also = "" if "cuda" in put else ', y.to("cuda")'
    source = f"""
import torch

class Runner:
    def __init__(self, device):
        self.device = device

    def move(self, x):
        return x.to(self.device)

    def run(self, x, y):
        x = {put}
        return x{also}
"""
    found = findings("DEV510", source)
    assert [each.told for each in found] == [told]


@pytest.mark.parametrize("test", ["accelerator is not None", "accelerator"])
def test_an_accelerator_that_is_not_there(test: str) -> None:
    source = f"""
import torch

def gathered(number, accelerator=None):
    if {test}:
        return accelerator.gather(torch.tensor([number], device=accelerator.device))
    else:
        return torch.tensor([number], device="cuda")
"""
    assert not findings("DEV510", source)
    assert findings("DEV510", source.replace(f"if {test}", "if number > 1"))
