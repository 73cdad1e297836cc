"""Fixes of timm that a test on a CPU does not show."""

import pytest
import torch
from bare_packages import stand_for
from torch import nn

GPU = "cuda:0" if torch.cuda.is_available() else "cpu"
stand_for(["timm", "timm.layers", "timm.utils"])  # they ask for torchvision


@pytest.mark.fix("24f6d4f7f")
def test_an_average_on_the_cpu_of_a_model_of_the_gpu():
    from timm.utils.model_ema import ModelEmaV3

    model = nn.Linear(2, 2).to(GPU)
    average = ModelEmaV3(model, device="cpu", foreach=False)
    average.update(model)
    assert average.module.weight.device.type == "cpu"


@pytest.mark.fix("df7ae11eb")
def test_an_embedding_of_the_gpu_is_resized():
    from timm.layers.patch_embed import resample_patch_embed

    found = resample_patch_embed(torch.rand(4, 3, 8, 8, device=GPU), [4, 4])
    assert found.device == torch.device(GPU)
