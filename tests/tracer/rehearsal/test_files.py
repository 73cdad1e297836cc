"""Modules, optimizers and odd things in files and pickles: where they come back."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

pytestmark = [
    pytest.mark.usefixtures("two_gpus"),
    pytest.mark.filterwarnings("ignore:Sparse (CSR|invariant)"),
]


class Box:
    def __init__(self, content: Any) -> None:
        self.content = content


class Net(nn.Module):  # type: ignore[misc]
    """With tensors that `_apply` does not know of."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.register_buffer("count", torch.zeros(2))
        self.extra = torch.ones(2)
        self.box = Box([torch.ones(1)])


def net() -> Any:
    made = Net().cuda()
    made.extra, made.box.content = made.extra.cuda(), [torch.ones(1, device="cuda")]
    return made


def devices(given: Any) -> set[str]:
    tensors = [*given.state_dict().values(), given.extra, *given.box.content]
    return {str(each.device) for each in tensors}


def through_a_file(value: Any, **options: Any) -> Any:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, weights_only=False, **options)


@pytest.mark.parametrize("copied", [
    through_a_file, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)),
    lambda x: pickle.loads(ForkingPickler.dumps(x)),
], ids=["file", "deepcopy", "pickle", "to a process"])  # fmt: skip
def test_a_whole_module_comes_back_where_it_was(copied: Callable[[Any], Any]) -> None:
    given = net()
    again = copied(given)
    assert devices(again) == {"cuda:0"}
    assert isinstance(again.linear.weight, nn.Parameter)
    assert again.linear.weight.requires_grad
    assert torch.equal(again.linear.weight, given.linear.weight)
    assert again.linear.weight.data_ptr() != given.linear.weight.data_ptr()


@pytest.mark.parametrize(("location", "expected"), [
    ("cpu", "cpu"), ("cuda:1", "cuda:1"), (torch.device("cuda", 1), "cuda:1"), ("meta", "meta"),
    ({"cuda:0": "cuda:1"}, "cuda:1"), (lambda storage, at: storage, "cpu"),
    (lambda storage, at: storage.cuda(1), "cuda:1"), (lambda storage, at: None, "cuda:0"),
])  # fmt: skip
def test_a_whole_module_goes_where_it_is_asked_to(location: Any, expected: str) -> None:
    assert devices(through_a_file(net(), map_location=location)) == {expected}


@pytest.mark.parametrize("options", [
    {"_use_new_zipfile_serialization": False}, {"_use_new_zipfile_serialization": True},
])  # fmt: skip
@pytest.mark.parametrize("mmap", [False, True])
def test_files_of_all_forms(options: dict[str, bool], mmap: bool, tmp_path: Path) -> None:
    if mmap and not options["_use_new_zipfile_serialization"]:
        pytest.skip("torch maps new files only")
    torch.save(net(), tmp_path / "net.pt", **options)
    assert devices(torch.load(tmp_path / "net.pt", weights_only=False, mmap=mmap)) == {"cuda:0"}


def test_a_module_with_its_optimizer() -> None:
    given = net()
    optimizer = torch.optim.Adam(given.parameters())
    given.linear(torch.ones(1, 2, device="cuda")).sum().backward()
    optimizer.step()
    again = through_a_file({"net": given, "optimizer": optimizer, "state": optimizer.state_dict()})
    weight = again["net"].linear.weight
    assert again["optimizer"].param_groups[0]["params"][0] is weight
    assert again["optimizer"].state[weight]["exp_avg"].device.type == "cuda"
    assert again["optimizer"].state[weight]["step"].device.type == "cpu"
    assert again["state"]["state"][0]["exp_avg_sq"].device.type == "cuda"
    weight.grad = torch.ones_like(weight)
    again["optimizer"].step()
    fresh = torch.optim.Adam(given.parameters())
    fresh.load_state_dict(again["state"])
    assert fresh.state[given.linear.weight]["exp_avg"].device.type == "cuda"


def test_what_shares_memory_shares_it_afterwards() -> None:
    tied = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)]).cuda()
    tied[1].weight = tied[0].weight
    again = through_a_file(tied)
    assert again[0].weight is again[1].weight
    whole = torch.arange(4.0, device="cuda")
    whole, part = through_a_file([whole, whole[1:]])
    part.zero_()
    assert whole.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("form", ["to_sparse", "to_sparse_csr"])
def test_sparse_tensors(form: str) -> None:
    given = getattr(torch.eye(3, device="cuda:1"), form)()
    again = through_a_file(given)
    assert (again.device, again.layout) == (torch.device("cuda:1"), given.layout)
    assert again.to_dense().tolist() == torch.eye(3).tolist()


def test_what_is_read_is_accounted() -> None:
    file = io.BytesIO()
    torch.save(torch.ones(1 << 18, device="cuda"), file)
    before = torch.cuda.memory_allocated()
    file.seek(0)
    loaded = torch.load(file)
    assert torch.cuda.memory_allocated() - before == 1 << 20
    del loaded
    assert torch.cuda.memory_allocated() == before


def test_a_copy_is_another_tensor_on_the_same_memory() -> None:
    weight = nn.Linear(2, 2).cuda().weight
    weight.label = "mine"
    again = copy.copy(weight)
    assert (again is weight, again.data_ptr() == weight.data_ptr()) == (False, True)
    assert (again.requires_grad, again.label) == (True, "mine")
