"""Fixes of torchmetrics that a test on a CPU does not show."""

import pytest
import torch
from torch import nn

GPU = "cuda:0" if torch.cuda.is_available() else "cpu"
two_gpus = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="two GPUs")


@pytest.mark.fix("f7eeace11")
@two_gpus
def test_sums_stay_on_the_second_gpu():
    from torchmetrics.utilities.data import _cumsum

    torch.use_deterministic_algorithms(True)
    try:
        assert _cumsum(torch.ones(4, device="cuda:1")).device == torch.device("cuda:1")
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.fix("6f890344d")
def test_a_shared_network_is_moved():
    from torchmetrics.wrappers.feature_share import NetworkCache

    cache = NetworkCache(nn.Linear(2, 2)).to(GPU)
    assert cache(torch.ones(1, 2, device=GPU)).device == torch.device(GPU)


@pytest.mark.fix("a57dfae0c")
def test_similarity_of_images_of_the_gpu(monkeypatch):
    from torchmetrics.functional.image import lpips

    class Net(nn.Module):
        def __init__(self, net: str) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4))

        def forward(self, one: torch.Tensor, other: torch.Tensor, normalize: bool) -> torch.Tensor:
            return ((one - other) * self.weight).mean((1, 2, 3))

    monkeypatch.setattr(lpips, "_NoTrainLpips", Net)
    monkeypatch.setattr(lpips, "_valid_img", lambda *_: True)
    one, other = torch.rand(2, 1, 3, 4, 4, device=GPU)
    found = lpips.learned_perceptual_image_patch_similarity(one, other, net_type="squeeze")
    assert found.device == torch.device(GPU)


@pytest.mark.fix("cd7ef5501")
def test_no_boxes_are_compared_on_the_gpu():
    from torchmetrics.functional.detection.iou import _iou_compute

    found = _iou_compute(torch.empty(0, 2, device=GPU), labels_eq=False)
    assert found.device == torch.device(GPU)


@pytest.mark.fix("c51940269")
def test_weighted_auroc_of_a_missing_class():
    from torchmetrics.functional import auroc

    preds = torch.tensor([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.3, 0.6, 0.1]], device=GPU)
    target = torch.tensor([0, 1, 1], device=GPU)
    with pytest.warns(UserWarning, match="0 observations"):
        found = auroc(preds, target, num_classes=3, average="weighted")
    assert found.cpu() == 1


@pytest.mark.fix("4fd18b363")
def test_the_last_value_is_moved():
    from torchmetrics import MeanSquaredError

    metric = MeanSquaredError()
    metric(torch.ones(3), torch.zeros(3))
    metric.compute()
    metric.to(GPU)
    assert metric._forward_cache.device == torch.device(GPU)
    assert metric._computed.device == torch.device(GPU)


@pytest.mark.fix("f9d7d5ff7")
def test_a_metric_that_answers_on_the_cpu():
    from torchmetrics.functional.audio.pit import pit

    def on_the_cpu(preds: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return (preds - target).mean(-1).cpu()

    best, _ = pit(*torch.rand(2, 3, 2, 8, device=GPU), on_the_cpu, "max")
    assert best.device.type == "cpu"
