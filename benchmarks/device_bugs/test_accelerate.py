"""Fixes of accelerate that came without a test of devices."""

import pytest
import torch
from accelerate import cpu_offload, dispatch_model
from accelerate.utils import modeling, offload
from torch import nn

GPU = "cuda:0" if torch.cuda.is_available() else "cpu"
two_gpus = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="two GPUs")


class Scaled(nn.Module):
    """Has a parameter of its own beside its layer."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((4,), 2.0))
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) * self.scale


@pytest.mark.fix("07e2e712c")
def test_a_weight_of_the_gpu_is_offloaded(tmp_path):
    weight = torch.randn(3, 3, device=GPU)
    index = offload.offload_weight(weight, "w", str(tmp_path), {})
    loaded = offload.load_offloaded_weight(str(tmp_path / "w.dat"), index["w"])
    assert (torch.as_tensor(loaded) == weight.cpu()).all()


@pytest.mark.fix("5e8ab12c3")
def test_a_parameter_of_the_root_is_offloaded():
    model = Scaled()
    expected = model(torch.ones(2, 4))
    cpu_offload(model, torch.device(GPU))
    torch.testing.assert_close(model(torch.ones(2, 4)).cpu(), expected)


@pytest.mark.fix("f438a813f")
@two_gpus
def test_a_parameter_goes_to_the_other_gpu():
    layer = nn.Linear(2, 2).to("cuda:0")
    modeling.set_module_tensor_to_device(layer, "weight", "cpu")
    assert isinstance(layer.weight, nn.Parameter)
    assert layer.weight.device.type == "cpu"


@pytest.mark.fix("6b2d96889")
def test_a_parameter_that_is_there_stays_the_same():
    layer = nn.Linear(2, 2).to(GPU)
    weight = layer.weight
    modeling.set_module_tensor_to_device(layer, "weight", torch.device(GPU).type)
    assert layer.weight is weight


@pytest.mark.fix("c0552c901")
def test_the_state_of_an_offloaded_model_is_on_the_cpu():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    model.eval()
    cpu_offload(model, torch.device(GPU))
    state = modeling.get_state_dict_offloaded_model(model)
    assert {each.device.type for each in state.values()} == {"cpu"}


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor, cache: dict[str, torch.Tensor]) -> torch.Tensor:
        self.seen = cache["k"].device.type
        return self.layer(x)


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, x: torch.Tensor, cache: dict[str, torch.Tensor]) -> torch.Tensor:
        return self.inner(x, cache=cache)


@pytest.mark.fix("7d3bbe721")
def test_a_skipped_argument_stays_where_it_is():
    model = nn.ModuleDict({"a": Outer(), "b": Outer()})
    other = "cpu" if GPU == "cpu" else "cuda:1"
    dispatch_model(
        model, {"a": GPU, "b": other}, main_device=GPU, skip_keys=["cache"], force_hooks=True
    )
    model["b"](torch.ones(1, 2), cache={"k": torch.ones(1)})
    assert model["b"].inner.seen == "cpu"
