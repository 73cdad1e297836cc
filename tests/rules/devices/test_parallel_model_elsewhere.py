"""DEV625, and DEV547 of a gradient that is None."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.refused import ended, mended

PARALLEL = """\
import torch
from torch import nn
model = nn.DataParallel(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)))
{then}
model(torch.ones(4, 4).cuda())
"""


def test_the_whole_model(tmp_path: Path) -> None:
    seen = ended(tmp_path, PARALLEL.format(then=""), "DEV625", rehearse="cuda:2")
    assert "from cuda:0, and the whole `Sequential` is on cpu" in seen.only.message
    mended(tmp_path, seen, "DEV625", rehearse="cuda:2")


def test_a_layer_that_was_put_in_later(tmp_path: Path) -> None:
    then = "model.cuda(); model.module[1] = nn.Linear(4, 2)"
    seen = ended(tmp_path, PARALLEL.format(then=then), "DEV625", rehearse="cuda:2")
    assert "and `1.weight` and `1.bias` are on cpu" in seen.only.message


def test_a_model_on_several_gpus(tmp_path: Path) -> None:
    then = "model.cuda(); model.module[1].to('cuda:1')"
    seen = ended(tmp_path, PARALLEL.format(then=then), "DEV625", rehearse="cuda:2")
    assert "`1.weight` and `1.bias` are on cuda:1" in seen.only.message
    assert "needs no `DataParallel`" in seen.only.fixes[0].description


IMAGE = """\
import torch
net = torch.nn.Linear(4, 1).to("cuda")
image = torch.ones(1, 4, requires_grad=True).to("cuda")
for _ in range(2):
    net(image).sum().backward()
    with torch.no_grad():
        image -= 0.1 * image.grad
        image.grad.zero_()
"""
SCALED = """\
import torch
w = torch.ones(3, requires_grad=True)
x = w * 2
x.sum().backward()
print(x.grad.norm())
assert w.grad is not None
"""


@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_the_gradient_of_a_moved_tensor(tmp_path: Path) -> None:
    seen = ended(tmp_path, IMAGE, "DEV547", rehearse="cuda")
    assert "`image.grad` is None" in seen.only.message
    assert "`Tensor.to` at program.py:3 made another of it" in seen.only.message
    assert "image = image.detach().requires_grad_()\nfor" in seen.fixed
    mended(tmp_path, seen, "DEV547", rehearse="cuda")


@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_the_gradient_of_a_computed_tensor(tmp_path: Path) -> None:
    """Cut off from what it was computed from, that would get no gradient."""
    seen = ended(tmp_path, SCALED, "DEV547")
    assert "x.retain_grad()\n" in seen.fixed
    mended(tmp_path, seen, "DEV547")


THREAD = """\
from concurrent.futures import ThreadPoolExecutor
import torch
{here}torch.cuda.set_device(1)
model = torch.nn.Linear(4, 2).to("cuda:1")
def answer():
    {there}
    return model(torch.ones(2, 4, device="cuda")).sum().item()
with ThreadPoolExecutor(1) as pool:
    pool.submit(answer).result()
"""


def test_the_current_gpu_of_another_thread(tmp_path: Path) -> None:
    source = THREAD.format(here="", there="pass")
    seen = ended(tmp_path, source, "DEV502", rehearse="cuda:2")
    change = seen.only.fixes[0].description
    assert "call `torch.cuda.set_device(1)` in the thread as well" in change
    mend = THREAD.format(here="", there="torch.cuda.set_device(1)")
    assert ended(tmp_path / "after", mend, "DEV502", rehearse="cuda:2").error is None
