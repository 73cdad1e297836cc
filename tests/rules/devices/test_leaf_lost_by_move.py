"""DEV547, `leaf-lost-by-move`: how bad it is."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import HEAD, severity

NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("torch.zeros(3, requires_grad=True).cuda()", ERROR),
        ("torch.zeros(3, requires_grad=True).to('cuda')", ERROR),
        ("torch.zeros(3, requires_grad=True).to(device)", WARNING),
        ("nn.Parameter(start).to(device)", NOTE),
        ("nn.Parameter(padded(torch.zeros(3, device=device))).to(device)", None),
        ("nn.Parameter(torch.zeros(3, device=device)).to(device)", None),
    ],
)
def test_where_the_leaf_may_be_already(made: str, expected: Severity | None) -> None:
    source = (
        HEAD + f"def fit(loss_of, start, device):\n    x = {made}\n"
        "    steps = torch.optim.SGD([x], lr=0.1)\n    loss_of(x).backward()\n    steps.step()\n"
    )
    assert severity("DEV547", source) is expected
