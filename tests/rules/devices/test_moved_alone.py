"""DEV522, `moved-alone`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import HEAD, severity


@pytest.mark.parametrize(
    ("owner", "expected"), [("self", Severity.NOTE), ("layer", Severity.WARNING)]
)
def test_two_tensors_of_one_object(owner: str, expected: Severity) -> None:
    source = (
        HEAD + "class Scaled(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
        "        self.weight = nn.Parameter(torch.ones(n, n))\n"
        "        self.bias = nn.Parameter(torch.ones(n))\n\n"
        "    def forward(self, x, layer):\n"
        f"        weight = {owner}.weight.to(x.device)\n"
        f"        return nn.functional.linear(x, weight, {owner}.bias)\n"
    )
    assert severity("DEV522", source) is expected
