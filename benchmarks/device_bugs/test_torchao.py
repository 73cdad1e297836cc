"""Fixes of torchao that a test on a CPU does not show."""

import pytest
import torch
from torch import nn

GPU = "cuda:0" if torch.cuda.is_available() else "cpu"


@pytest.mark.fix("ec6affec2")
def test_a_quantized_weight_goes_where_it_is_asked_to():
    from torchao.dtypes.nf4tensor import to_nf4

    weight = to_nf4(torch.rand(64, 64), 64, 32)
    assert weight.to(device=GPU, dtype=torch.float32).device == torch.device(GPU)


@pytest.mark.fix("76e2ef59d")
def test_a_quantized_layer_is_moved():
    from torchao.quantization.weight_only import WeightOnlyInt8QuantLinear

    layer = WeightOnlyInt8QuantLinear.from_float(nn.Linear(8, 8)).to(GPU)
    assert layer(torch.ones(2, 8, device=GPU)).device == torch.device(GPU)


@pytest.mark.fix("cfbac91e3")
def test_named_layers_go_where_they_are_asked_to():
    from torchao.quantization import FqnToConfig, Int8WeightOnlyConfig, quantize_

    model = nn.Sequential(nn.Linear(8, 8))
    quantize_(model, FqnToConfig({"0": Int8WeightOnlyConfig()}), filter_fn=None, device=GPU)
    assert model[0].weight.device == torch.device(GPU)
