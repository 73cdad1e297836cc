"""Quantized weights of torchao, which are tensors around tensors, on simulated GPUs."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest

torch = pytest.importorskip("torch")
quantization = pytest.importorskip("torchao.quantization")

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]
ON_BOTH = [
    "Int8WeightOnlyConfig",
    "Int8DynamicActivationInt8WeightConfig",
    "Float8WeightOnlyConfig",
    "IntxWeightOnlyConfig",
    "Int8DynamicActivationIntxWeightConfig",
]
ON_A_GPU_ONLY = ["Float8DynamicActivationFloat8WeightConfig"]
INPUT = torch.linspace(-1, 1, 4 * 64).reshape(4, 64).bfloat16()


def quantized(name: str, device: str, then: str = "") -> Any:
    torch.manual_seed(0)
    layers = [torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64)]
    model = torch.nn.Sequential(*layers).bfloat16().to(device)
    quantization.quantize_(model, getattr(quantization, name)())
    return model.to(then or device)


@pytest.mark.parametrize("name", ON_BOTH)
def test_quantized_on_the_device_or_before_gives_the_numbers_of_the_cpu(
    gpus: Any, name: str
) -> None:
    expected = quantized(name, "cpu")(INPUT)
    for model in (quantized(name, "cuda"), quantized(name, "cpu", then="cuda")):
        weight = model[0].weight
        assert type(weight) not in (torch.Tensor, torch.nn.Parameter)
        assert weight.device == torch.device("cuda:0")
        result = model(INPUT.cuda())
        assert result.device == torch.device("cuda:0")
        torch.testing.assert_close(result.cpu(), expected)


@pytest.mark.parametrize("name", ON_A_GPU_ONLY)
def test_what_needs_a_gpu_finds_one(gpus: Any, name: str) -> None:
    """On the CPU alone torchao refuses: it asks for a GPU's capability."""
    plain = quantized("Float8WeightOnlyConfig", "cuda")(INPUT.cuda())
    torch.testing.assert_close(quantized(name, "cuda")(INPUT.cuda()), plain, rtol=0.1, atol=0.05)


@pytest.mark.parametrize("name", ON_BOTH)
def test_copies_and_files_keep_type_and_place(gpus: Any, name: str) -> None:
    model = quantized(name, "cuda:1")
    kind = type(model[0].weight)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)["0.weight"]
    copied = copy.deepcopy(model)[0].weight
    for weight in (loaded, copied):
        assert type(weight) is kind
        assert weight.device == torch.device("cuda:1")
    assert model.cpu()[0].weight.device.type == "cpu"
    assert type(model[0].weight) is kind
    assert model(INPUT).device.type == "cpu"


def test_an_input_left_on_the_cpu_raises_as_on_a_gpu(gpus: Any) -> None:
    model = quantized("Int8WeightOnlyConfig", "cuda")
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        model(INPUT)


def test_memory_counts_the_bytes_inside(gpus: Any) -> None:
    torch.manual_seed(0)
    plain = torch.nn.Linear(512, 512, bias=False).bfloat16().cuda()
    whole = torch.cuda.memory_allocated()
    del plain
    quantization.quantize_(
        model := torch.nn.Sequential(torch.nn.Linear(512, 512, bias=False)).bfloat16().cuda(),
        quantization.Int8WeightOnlyConfig(),
    )
    assert model[0].weight.shape == (512, 512)
    assert whole / 2 <= torch.cuda.memory_allocated() < whole * 0.6
