"""DEV531, `default-on-one-return`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import HEAD, severity


@pytest.mark.parametrize(("size", "expected"), [("0, 2", Severity.WARNING), ("", None)])
def test_a_factory_that_raises(size: str, expected: Severity | None) -> None:
    source = (
        HEAD + "class Rows(nn.Module):\n    def forward(self, x, device):\n"
        f"        if x is None:\n            return torch.zeros({size})\n"
        "        return torch.ones(3, 2, device=device) + torch.zeros(3, 2)\n"
    )
    assert severity("DEV531", source) is expected


def test_an_empty_list_has_no_device() -> None:
    source = """
    import torch

    def stacked(rows: list[torch.Tensor], like: torch.Tensor):
        if not rows:
            return torch.empty(0)
        return torch.stack(rows)
    """
    assert severity("DEV531", source) is None


def test_a_type_that_is_asked_for() -> None:
    source = """
    import torch

    def sigma(t: torch.Tensor, low: float):
        if not type(t) == torch.Tensor:
            return torch.tensor([t, low])
        return low * t
    """
    assert severity("DEV531", source) is None
