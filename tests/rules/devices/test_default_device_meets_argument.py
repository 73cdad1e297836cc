"""DEV520, `default-device-meets-argument`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import findings

ONE_HOT = (
    "import torch\n\n\ndef rows_of(x: torch.Tensor, n, device='cuda'):\n"
    "    return torch.zeros(len(x), n, device=device) + x.long().view(-1, 1)\n"
    "\n\ndef mixed(x, n, device='cuda'):\n    return rows_of(x, n, {passed})\n"
    "\n\ndef both(x):\n    return mixed(x, 2, {given})\n"
)


@pytest.mark.parametrize(
    ("passed", "given", "expected"),
    [
        ("device=device", "device=x.device", Severity.NOTE),
        ("x.device", "", Severity.NOTE),
        ("device=device", "", Severity.WARNING),
        ("", "device=x.device", Severity.WARNING),
    ],
)
def test_a_default_that_no_call_leaves(passed: str, given: str, expected: Severity) -> None:
    found = findings("DEV520", ONE_HOT.format(passed=passed, given=given))
    assert [each.severity for each in found if each.site.line == 5] == [expected]
