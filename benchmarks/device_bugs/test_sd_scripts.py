"""Fixes of sd-scripts that a test on a CPU does not show."""

from types import SimpleNamespace

import pytest
import torch

GPU = "cuda:0" if torch.cuda.is_available() else "cpu"


@pytest.mark.fix("1f1cae6c5")
def test_a_loss_of_the_gpu_is_weighted():
    from library.custom_train_functions import apply_snr_weight

    scheduler = SimpleNamespace(alphas_cumprod=torch.linspace(0.9, 0.1, 10))
    loss, timesteps = torch.ones(2, device=GPU), torch.tensor([1, 5], device=GPU)
    assert apply_snr_weight(loss, timesteps, scheduler, 5.0).device == torch.device(GPU)
