"""DEV565, `gradients-meet-argument`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import HEAD, severity

SCALED = (
    HEAD + "class Run:\n    def step(self, loss):\n        with self.model.{context}():\n"
    "            loss.backward()\n\n    def scale(self, factor: torch.Tensor):\n"
    "        for p in self.model.parameters():\n            p.grad.mul_(factor)\n"
)


@pytest.mark.parametrize(
    ("context", "expected"), [("no_sync", Severity.NOTE), ("timed", Severity.WARNING)]
)
def test_each_process_has_one_gpu(context: str, expected: Severity) -> None:
    assert severity("DEV565", SCALED.format(context=context)) is expected
