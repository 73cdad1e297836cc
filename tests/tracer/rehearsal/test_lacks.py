"""What a rehearsal lacks is known from the errors of those who miss it, and from nothing else."""

from __future__ import annotations

import unittest

import pytest

pytest.importorskip("torch")

from tensortrail.tracer.rehearsal import lacks
from tensortrail.tracer.rehearsal.devices.nccl_groups import SAME_GPU
from tensortrail.tracer.rehearsal.lacking_errors import lack_behind

LACKING = {
    "triton is not installed here": ModuleNotFoundError("No module named 'triton.language'"),
    "mslk is not installed here": ImportError("Requires mslk >= 1.0.0"),
    "kernels of triton need a GPU": RuntimeError("0 active drivers ([]). There should be one."),
    "aten::_convert_weight_to_int4pack has a kernel for GPUs only": NotImplementedError(
        "Could not run 'aten::_convert_weight_to_int4pack' with arguments from the 'CPU' backend."
    ),
    "torch._cuda_getDriverVersion is not there": AttributeError(
        "module 'torch._C' has no attribute '_cuda_getDriverVersion'"
    ),
    "memory that C++ asks for is not simulated": RuntimeError(
        "PyTorch is not linked with support for cuda devices"
    ),
    "matrices scaled in blocks have kernels for GPUs only": ValueError(
        "Invalid scaling configuration."
    ),
    "ProcessGroupNCCL is not there": ImportError("cannot import name 'ProcessGroupNCCL'"),
}
OTHERS = (
    RuntimeError("Expected all tensors to be on the same device, but found two"),
    ModuleNotFoundError("No module named 'tritonish'"),
    ImportError("No module named 'datasets'"),
    NotImplementedError(
        "Could not run 'aten::record_stream' with arguments from the 'CPU' backend: on the host"
    ),
    AttributeError("module 'torch.cuda' has no attribute 'nothing'"),
    AssertionError("triton"),
    RuntimeError(SAME_GPU.format(0, 1, 4096)),
)


@pytest.mark.parametrize("said", LACKING)
def test_what_is_lacking_is_named(said: str) -> None:
    assert lack_behind(LACKING[said]).startswith(said)
    around = ValueError("something else")
    around.__cause__ = LACKING[said]
    assert lack_behind(around).startswith(said)


@pytest.mark.parametrize("error", OTHERS, ids=str)
def test_other_errors_are_failures(error: Exception) -> None:
    assert lack_behind(error) == ""


def test_refusals_of_ours_are_noted_and_skip_a_test() -> None:
    lacks.met.clear()
    refusal = lacks.NotRehearsed("CUDA graphs")
    assert isinstance(refusal, NotImplementedError)
    assert isinstance(refusal, unittest.SkipTest)
    assert lack_behind(refusal) == "CUDA graphs"
    lacks.note("no kernels")
    lacks.note("no kernels")
    assert lacks.taken() == [lacks.Lack("CUDA graphs", True), lacks.Lack("no kernels", False)]
    assert lacks.taken() == []
