"""Fixes of compressed-tensors that a test on a CPU does not show."""

import pytest
import torch

GPU = "cuda:0" if torch.cuda.is_available() else "cpu"


@pytest.mark.fix("318569d53")
def test_a_weight_of_the_gpu_is_dequantized_with_a_scale_of_the_cpu():
    from compressed_tensors.quantization.lifecycle.forward import dequantize

    weight = torch.ones(2, 4, dtype=torch.int8, device=GPU)
    scale, zero = torch.ones(2, 1), torch.zeros(2, 1, dtype=torch.int8)
    assert dequantize(weight, scale, zero).device == torch.device(GPU)
