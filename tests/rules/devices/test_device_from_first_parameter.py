"""DEV505, `device-from-first-parameter`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("device: torch.device", Severity.WARNING),
        ("device: torch.device = torch.device('cuda')", Severity.NOTE),
    ],
)
def test_a_device_that_callers_may_leave_out(given: str, expected: Severity) -> None:
    source = (
        "import torch\n\n\nclass Renderer:\n"
        f"    def views(self, x: torch.Tensor, {given}):\n        return x.to(self.device)\n"
    )
    assert severity("DEV505", source) is expected


@pytest.mark.parametrize(
    ("last", "expected"),
    [("return x", Severity.NOTE), ("self.maybe_free_model_hooks()", Severity.WARNING)],
)
def test_a_pipeline_may_know_nothing_of_offloading(last: str, expected: Severity) -> None:
    source = f"""
import torch
from diffusers import DiffusionPipeline

class Pipe(DiffusionPipeline):
    def __call__(self, x):
        device = self._execution_device
        x = self.vae.encode(x.to(self.vae.device)).to(device)
        {last}
"""
    assert severity("DEV505", source) is expected


@pytest.mark.parametrize(
    ("settled", "expected"), [("self.device = resolve(device)", None), ("", Severity.WARNING)]
)
def test_a_device_that_a_method_settles_is_the_one_it_was_given(
    settled: str, expected: Severity | None
) -> None:
    source = f"""
    import torch

    class Predictor:
        def to(self, x: torch.Tensor, device: torch.device):
            {settled or "pass"}
            return x.to(self.device)
    """
    assert severity("DEV505", source) is expected
