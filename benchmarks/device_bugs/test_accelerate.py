"""Fixes of accelerate that came without a test of devices."""

import pytest
import torch
from accelerate import cpu_offload, dispatch_model, hooks
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


@pytest.mark.fix("76c41f0df")
def test_a_parameter_of_the_root_is_aligned():
    model = Scaled()
    expected = model(torch.ones(2, 4))
    other = "cpu" if GPU == "cpu" else "cuda:1"
    model.scale.data = model.scale.data.to(other)
    dispatch_model(model, {"layer": GPU, "scale": other}, main_device=GPU)
    torch.testing.assert_close(model(torch.ones(2, 4)).cpu(), expected)


@pytest.mark.fix("6b2d96889")
def test_a_parameter_that_is_there_stays_the_same():
    layer = nn.Linear(2, 2).to(GPU)
    weight = layer.weight
    modeling.set_module_tensor_to_device(layer, "weight", torch.device(GPU).type)
    assert layer.weight is weight


@pytest.mark.fix("2106e87d5")
def test_two_models_are_never_on_the_gpu_together():
    first, second = nn.Linear(256, 256), nn.Linear(256, 256)
    hook = hooks.CpuOffload(GPU)
    hooks.add_hook_to_module(first, hook, append=True)
    after = hooks.CpuOffload(GPU, hooks.UserCpuOffloadHook(first, hook))
    hooks.add_hook_to_module(second, after, append=True)
    x = torch.ones(1, 256, device=GPU)
    with torch.no_grad():
        first(x)
        if GPU != "cpu":
            torch.cuda.reset_peak_memory_stats()
        second(x)
    size = sum(each.numel() * 4 for each in second.parameters())
    assert GPU == "cpu" or torch.cuda.max_memory_allocated() < 1.5 * size


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


class State:
    def state_dict(self) -> dict[str, torch.Tensor]:
        return {"x": torch.ones(1, device=GPU)}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        self.x = state["x"]


@pytest.mark.fix("947b2a88a")
def test_a_state_of_another_gpu_is_loaded_on_the_cpu(tmp_path):
    from accelerate import Accelerator, checkpointing

    Accelerator()  # the logger of checkpointing asks for it
    state = State()
    checkpointing.save_custom_state(state, tmp_path)
    checkpointing.load_custom_state(state, tmp_path)
    assert state.x.device.type == "cpu"


@pytest.mark.fix("b2ea1c7b4")
def test_a_state_is_loaded_on_the_gpu_alone(tmp_path):
    from safetensors.torch import save_file

    save_file({"weight": torch.ones(2)}, tmp_path / "w.safetensors", metadata={"format": "pt"})
    found = modeling.load_state_dict(str(tmp_path / "w.safetensors"), device_map={"": GPU})
    assert found["weight"].device == torch.device(GPU)
