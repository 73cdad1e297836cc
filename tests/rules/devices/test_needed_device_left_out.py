"""DEV595, `needed-device-left-out`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity

BEHIND = (
    "import torch\n\n\ndef batch(rows, device):\n    return torch.stack(rows).to(device)\n\n\n"
    "def update(rows, device):\n    {first}\n    return batch(rows)\n"
)


@pytest.mark.parametrize(
    ("first", "expected"),
    [("print(device)", Severity.ERROR), ("raise NotImplementedError", Severity.NOTE)],
)
def test_what_nothing_comes_to(first: str, expected: Severity) -> None:
    assert severity("DEV595", BEHIND.format(first=first)) is expected
