"""Fixes of bitsandbytes that a test on a CPU does not show."""

import pytest
import torch

GPU = "cuda:0" if torch.cuda.is_available() else "cpu"


@pytest.mark.fix("e4fe1cfbf")
def test_a_quantization_state_is_moved_as_a_whole():
    from bitsandbytes.functional import QuantState

    state = QuantState(
        absmax=torch.ones(2), shape=(2, 2), code=torch.ones(16), blocksize=64, quant_type="nf4",
        dtype=torch.float32,
    )  # fmt: skip
    state.to(GPU)
    assert {state.absmax.device, state.code.device} == {torch.device(GPU)}


@pytest.mark.fix("b8d1c2619")
def test_statistics_move_with_an_int8_weight():
    from bitsandbytes.nn import Int8Params

    weight = Int8Params(torch.ones(2, 2, dtype=torch.int8, device=GPU), requires_grad=False)
    weight.CB, weight.SCB = weight.data, torch.ones(2, device=GPU)
    moved = weight.to("cpu")
    assert (moved.CB.device.type, moved.SCB.device.type) == ("cpu", "cpu")
