"""Fixes of MONAI that a test on a CPU does not show."""

import pytest
import torch

GPU = "cuda:0" if torch.cuda.is_available() else "cpu"


@pytest.mark.fix("3c8f6c6b9")
def test_a_score_of_empty_masks_of_the_gpu():
    from monai.metrics import compute_generalized_dice

    masks = torch.zeros(2, 2, 4, 4, device=GPU)
    assert compute_generalized_dice(masks, masks).device == torch.device(GPU)


@pytest.mark.fix("7f8028838")
def test_boxes_of_the_gpu_are_cropped():
    from monai.data.box_utils import spatial_crop_boxes

    boxes = torch.tensor([[0.0, 0.0, 4.0, 4.0]], device=GPU)
    found, _ = spatial_crop_boxes(boxes, [1, 1], [3, 3])
    assert found.device == torch.device(GPU)


@pytest.mark.fix("f8c3901a9")
def test_a_loss_of_several_scales_on_the_gpu():
    from monai.losses import MultiScaleLoss

    loss = MultiScaleLoss(torch.nn.MSELoss(), scales=[1])
    images = torch.rand(1, 1, 8, 8, device=GPU)
    assert loss(images, images).device == torch.device(GPU)


@pytest.mark.fix("888ad2f1d")
def test_predictions_of_cpu_and_gpu_are_averaged():
    from types import SimpleNamespace

    from monai.apps.auto3dseg.ensemble_builder import AlgoEnsemble

    predictions = [torch.rand(2, 4, 4, 4, device=GPU), torch.rand(2, 4, 4, 4)]
    found = AlgoEnsemble.ensemble_pred(SimpleNamespace(mode="mean"), predictions)
    assert found.shape == (1, 4, 4, 4)


@pytest.mark.fix("4a4c25129")
def test_noise_comes_from_a_generator_of_the_gpu():
    from monai.networks.schedulers import DDPMScheduler

    scheduler = DDPMScheduler(num_train_timesteps=10)
    sample = torch.rand(1, 1, 4, 4, device=GPU)
    generator = torch.Generator(GPU).manual_seed(0)
    assert scheduler.step(sample, 5, sample, generator)[0].device == torch.device(GPU)
