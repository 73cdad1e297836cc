"""Fixes of pytorch-lightning that a test on a CPU does not show."""

import pytest
import torch
from bare_packages import stand_for

GPU = "cuda:0" if torch.cuda.is_available() else "cpu"
two_gpus = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="two GPUs")
PARTS = ("core", "callbacks", "trainer", "utilities")
stand_for(["pytorch_lightning", *(f"pytorch_lightning.{part}" for part in PARTS)])


@pytest.mark.fix("dc8ff5ed2")
@two_gpus
def test_a_module_knows_the_current_device():
    from pytorch_lightning.core.mixins.device_dtype_mixin import DeviceDtypeModuleMixin

    with torch.cuda.device(1):
        assert DeviceDtypeModuleMixin().cuda().device == torch.device("cuda:1")


@pytest.mark.fix("742ddd81b")
@two_gpus
def test_a_device_has_an_index():
    from pytorch_lightning.utilities.device_dtype_mixin import DeviceDtypeModuleMixin

    assert DeviceDtypeModuleMixin().to(torch.device("cuda")).device == torch.device("cuda:0")


@pytest.mark.fix("7d4e74c74")
def test_what_is_gathered_lies_on_the_gpu():
    from pytorch_lightning.utilities.apply_func import convert_to_tensors

    found = convert_to_tensors({"a": torch.ones(2), "b": 1.0}, torch.device(GPU))
    assert {each.device for each in found.values()} == {torch.device(GPU)}


@pytest.mark.fix("25b771ca0")
def test_losses_of_the_gpu_are_kept_there():
    from pytorch_lightning.trainer.supporters import TensorRunningAccum

    losses = TensorRunningAccum(3)
    losses.append(torch.ones((), device=GPU))
    assert losses.mean().device == torch.device(GPU)
