"""Fixes of optimum-quanto that a test on a CPU does not show."""

import pytest
import torch

GPU = "cuda:0" if torch.cuda.is_available() else "cpu"


@pytest.mark.fix("eaa127be4")
def test_probabilities_are_quantized_on_the_gpu():
    from quanto.quantization.qtensor import QTensor

    tensor = QTensor.quantize(torch.rand(2, 4, device=GPU))
    found = torch.nn.functional.softmax(tensor, dim=-1)
    assert found._scale.device == torch.device(GPU)


@pytest.mark.fix("794dbfd85")
def test_a_quantized_tensor_lies_on_the_gpu():
    from quanto.quantization.qtensor import QTensor

    tensor = QTensor.quantize(torch.rand(2, 4, device=GPU))
    assert torch.zeros_like(tensor.dequantize()).device == torch.device(GPU)
    assert tensor.to("cpu").device.type == "cpu"
