"""`pytest --rehearse cuda --move-inputs`: modules that CPU tests call run on a simulated GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.tracer.entrances.test_rehearsed_tests import ran

pytestmark = pytest.mark.complete

NET = """\
import torch
from torch import nn


class Good(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.register_buffer("scale", torch.ones(4))

    def forward(self, ids, mask=None):
        x = self.embed(ids) * self.scale
        return {"x": x if mask is None else x * mask[..., None], "n": ids.shape}


class Forgets(Good):
    def __init__(self):
        super().__init__()
        self.table = torch.arange(4.0)

    def forward(self, ids):
        return super().forward(ids)["x"] + self.table


class Makes(Good):
    def forward(self, ids):
        positions = torch.arange(ids.shape[1])
        return self.embed(ids) + self.embed(positions)


def score(model, ids):
    return model(ids)["x"].sum()
"""
TESTS = """\
import unittest
import numpy as np, torch
from net import Good, Forgets, Makes, score

IDS = torch.tensor([[1, 2, 3]])


def test_good():
    model = Good()
    expected = model.embed.weight[IDS].detach().clone()
    out = model(IDS, mask=torch.ones(1, 3))
    assert out["x"].device.type == "cpu"
    torch.testing.assert_close(out["x"], expected)
    np.testing.assert_allclose(out["x"].detach().numpy(), expected.numpy())
    assert torch.equal(model.embed.weight[IDS], expected)
    assert torch.allclose(model.embed.weight.detach(), model.state_dict()["embed.weight"])


def test_trains():
    model = Good()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    before = model.embed.weight.detach().clone()
    for _ in range(2):
        optimizer.zero_grad()
        model(IDS)["x"].sum().backward()
        optimizer.step()
    assert model.embed.weight.grad is not None
    assert not torch.allclose(before, model.embed.weight)


def test_forgets():
    assert Forgets()(IDS).shape == (1, 3, 4)


class TestMakes(unittest.TestCase):
    def test_makes(self):
        self.assertEqual(Makes()(IDS).shape, (1, 3, 4))


def test_asks_where():
    model = Good()
    model(IDS)
    assert model.embed.weight.device == torch.device("cpu")


def test_hands_over_itself():
    model = Good()
    model(IDS)
    score(model, IDS)


def test_for_gpus():
    model = Good().to("cuda:1")
    assert model(IDS.to("cuda:1"))["x"].device == torch.device("cuda:1")


def test_other_values():
    model = Good()
    model(IDS)
    assert model.scale.sum() == 5


class Doubles(torch.nn.Module):
    def forward(self, x):
        x.mul_(2)


def test_changes_in_place():
    x = torch.ones(2)
    Doubles()(x)
    assert x.tolist() == [2, 2]
"""


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict[str, str], str]:
    folder = tmp_path_factory.mktemp("project")
    (folder / "net.py").write_text(NET)
    (folder / "test_net.py").write_text(TESTS)
    return ran(folder, "--rehearse", "cuda:2", "--move-inputs")


def test_what_the_project_forgets_fails(moved: tuple[int, dict[str, str], str]) -> None:
    code, ended, text = moved
    assert code == 1
    assert {name for name, word in ended.items() if word == "FAILED"} == {
        "test_forgets", "TestMakes::test_makes", "test_other_values",
    }  # fmt: skip
    assert "OFF107" in text
    assert "`Forgets.table` is on cpu" in text
    assert "DEV502  net.py:" in text
    assert "failed with moved inputs: 3" in text
    assert "module.to('cuda:0')  # net.Makes" in text
    assert "module(torch.zeros((1, 3), dtype=torch.int64, device='cuda:0'))" in text
    assert "met in Tensor.?" not in text, "a move is taken for a meeting"


def test_a_test_of_the_cpu_still_holds(moved: tuple[int, dict[str, str], str]) -> None:
    _, ended, text = moved
    assert {name for name, word in ended.items() if word == "PASSED"} == {
        "test_good", "test_trains", "test_changes_in_place", "test_for_gpus",
    }  # fmt: skip
    assert "moved: 9 calls of modules in 8 of 9 tests" in text
    assert "unchanged: 1\n  1 x it puts tensors on a device itself" in text


def test_what_the_test_does_itself_is_said(moved: tuple[int, dict[str, str], str]) -> None:
    text = moved[2]
    assert "skipped, caused by the test itself: 2" in text
    assert "test_asks_where  the test itself, test_net.py:" in text
    assert "test_hands_over_itself  the test hands over ids of the CPU itself, made at" in text


def test_needs_a_rehearsal(tmp_path: Path) -> None:
    code, _, text = ran(tmp_path, "--move-inputs")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "--move-inputs needs --rehearse" in text


BLOCKS = """\
import torch
from torch import nn


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(4))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


class Shares(Blocks):
    \"\"\"A table made with the first block's input is added to each block's output.\"\"\"

    def forward(self, x):
        table = torch.arange(4.0, device=x.device)
        for block in self.blocks:
            x = block(x).relu_() + table.to(self.blocks[3].weight.device)
        return x


class Asks(Blocks):
    def forward(self, x):
        first, last = (self.blocks[place].weight.device for place in (0, 3))
        return super().forward(x) * (1 if first == last else 2)
"""
SPREAD = """\
import torch
from blocks import Asks, Blocks, Shares


def test_each():
    for kind in (Blocks, Shares, Asks):
        assert kind().eval()(torch.ones(2, 4)).shape == (2, 4)


def test_without_blocks():
    assert torch.nn.Linear(4, 4)(torch.ones(2, 4)).shape == (2, 4)
"""


def test_modules_are_spread_over_two_devices_and_offloaded(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    (tmp_path / "blocks.py").write_text(BLOCKS)
    (tmp_path / "test_blocks.py").write_text(SPREAD)
    code, ended, text = ran(tmp_path, "--rehearse", "cuda:2", "--spread-modules")
    assert (code, set(ended.values())) == (0, {"PASSED"})
    assert "spread over two devices at their blocks, and offloaded: 3 modules" in text
    assert "raise or return other values than on one device: 3" in text
    on_the_second = "with blocks.2, blocks.3 on cuda:1"
    assert f"blocks.Shares spread, {on_the_second}  blocks.py:22: RuntimeError: Expected" in text
    assert "blocks.Shares offloaded to the CPU  blocks.py:22: RuntimeError: " in text
    assert f"blocks.Asks spread, {on_the_second}  returns other values than on one device" in text
    assert "not spread: 1\n  1 x it has no blocks" in text
