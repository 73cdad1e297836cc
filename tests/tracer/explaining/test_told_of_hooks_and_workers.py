"""Failures of workers, of activations that wait elsewhere, and of calls without all buffers."""

from __future__ import annotations

import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402

import tensortrail  # noqa: E402
from tensortrail.tracer.noticing.escaped.shared_files import shared_file  # noqa: E402
from tests.tracer.explaining.test_explanation import explained  # noqa: E402

HERE = Path(__file__).name


class Slow(Dataset):  # type: ignore[misc]
    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> Any:
        time.sleep(2)
        return torch.ones(1)


def test_an_item_that_takes_too_long(tmp_path: Path) -> None:
    loader = DataLoader(Slow(), num_workers=1, timeout=0.2)
    told = explained(tmp_path, lambda: list(loader))
    assert "takes longer than `timeout=0.2` of the DataLoader" in told
    assert f"`Slow.__getitem__` at {HERE}:" in told


class Archive(Dataset):  # type: ignore[misc]
    def __init__(self, file: Path) -> None:
        self.archive = zipfile.ZipFile(file)


class Iterator:
    """As a loader with workers raises what one of them sent."""

    _num_workers = 2

    def __init__(self, data: Any) -> None:
        self._dataset = data

    def raises(self) -> None:
        raise zipfile.BadZipFile("Caught BadZipFile in DataLoader worker process 0.")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_that_workers_share(tmp_path: Path, workers: int) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a", "a")
    iterator = Iterator(Archive(tmp_path / "a.zip"))
    iterator._num_workers = workers
    with pytest.raises(zipfile.BadZipFile) as raised:
        iterator.raises()
    told = shared_file(raised.value, None)  # type: ignore[arg-type]
    assert (told is not None) is (workers > 1)
    if told is not None:
        assert "`Archive.archive` (ZipFile) was opened before the workers" in told["cause"]


def test_activations_that_are_given_back_elsewhere(tmp_path: Path) -> None:
    run = tensortrail.trace(tmp_path / "run", rehearse="cuda")

    def back(tensor: Any) -> Any:
        return tensor

    def program() -> None:
        net = nn.Sequential(nn.Linear(2, 2), nn.Tanh()).cuda()
        with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor.cpu(), back):
            loss = net(torch.ones(1, 2, device="cuda")).sum()
        loss.backward()

    with pytest.raises(RuntimeError), run:
        program()
    assert f"`back` at {HERE}:" in run.explanation
    assert "gives activations back on another device than they had" in run.explanation


class Doubled(torch.autograd.Function):  # type: ignore[misc, name-defined]
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return torch.from_numpy(grad.cpu().numpy() * 2)


def test_a_gradient_that_an_autograd_function_returns_elsewhere(tmp_path: Path) -> None:
    run = tensortrail.trace(tmp_path / "run", rehearse="cuda")

    def program() -> None:
        net = nn.Linear(2, 2).cuda()
        Doubled.apply(net(torch.ones(1, 2, device="cuda"))).sum().backward()

    with pytest.raises(RuntimeError), run:
        program()
    assert f"`Doubled.backward` at {HERE}:" in run.explanation
    assert "gets a gradient on cuda:0 and returns one on cpu" in run.explanation


def test_a_call_without_the_buffers(tmp_path: Path) -> None:
    net = nn.BatchNorm1d(2).eval()
    skeleton = nn.BatchNorm1d(2).eval().to("meta")

    def program() -> None:
        weights = dict(net.named_parameters())
        torch.func.functional_call(skeleton, weights, torch.ones(3, 2))

    told = explained(tmp_path, program)
    assert f"`functional_call` at {HERE}:" in told
    assert "was not given `running_mean`" in told
    assert "give it `running_mean` too" in told
