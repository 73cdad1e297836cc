"""STO212, `loss-keeps-graph`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity


@pytest.mark.parametrize(
    ("keeper", "expected"),
    [("Meter()", None), ("[]", Severity.WARNING), ("list()", Severity.WARNING)],
)
def test_a_meter_may_keep_the_number_alone(keeper: str, expected: Severity | None) -> None:
    source = f"""
    from tools import Meter

    def train(model, loader, optimizer):
        kept = {keeper}
        for batch in loader:
            loss = model(batch)
            loss.backward()
            optimizer.step()
            kept.{"add" if keeper == "Meter()" else "append"}(loss)
        return kept
    """
    assert severity("STO212", source) is expected
