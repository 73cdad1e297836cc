"""DEV586, `global-left-behind`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity


@pytest.mark.parametrize(
    ("pixels", "expected"),
    [("torch.from_numpy(rows)", None), ("model(torch.from_numpy(rows).cuda())", Severity.WARNING)],
)
def test_a_default_may_stay_where_all_callers_are(pixels: str, expected: Severity | None) -> None:
    source = f"""
    import torch

    def scaled(x, mean=torch.tensor([0.5, 0.4, 0.3]).view(-1, 1, 1)):
        return x - mean

    def main(model, rows):
        return scaled({pixels}).cuda()
    """
    assert severity("DEV586", source) is expected
