"""SHD420, `best-round-not-copied`: how bad it is."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity

NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR


@pytest.mark.parametrize(
    ("value", "use", "expected"),
    [
        ("value.cpu()", "return best, kept", NOTE),
        ("value.cpu()", "model.load_state_dict(kept)", WARNING),
        ("value", "return best, kept", ERROR),
    ],
)
def test_what_is_given_back_may_be_dropped(value: str, use: str, expected: Severity) -> None:
    source = f"""
    def fit(model, optimizer, loader, measured):
        best, kept = 0.0, None
        for _ in range(10):
            for batch in loader:
                optimizer.zero_grad()
                model(batch).backward()
                optimizer.step()
            if measured(model) > best:
                best = measured(model)
                kept = {{name: {value} for name, value in model.state_dict().items()}}
        {use}
    """
    assert severity("SHD420", source) is expected
