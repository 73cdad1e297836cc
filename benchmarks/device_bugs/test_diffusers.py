"""Fixes of diffusers that a test on a CPU does not show."""

import pytest
import torch

GPU = "cuda:0" if torch.cuda.is_available() else "cpu"


def steps(scheduler, count=5):
    """Denoises a sample of the GPU."""
    scheduler.set_timesteps(count, device=GPU)
    sample = torch.ones(1, 4, 2, 2, device=GPU)
    for t in scheduler.timesteps:
        sample = scheduler.step(sample * 0.1, t, sample).prev_sample
    return sample


@pytest.mark.fix("19ab04ff5")
def test_unipc_of_order_three():
    from diffusers.schedulers.scheduling_unipc_multistep import UniPCMultistepScheduler

    assert steps(UniPCMultistepScheduler(solver_order=3)).device == torch.device(GPU)
