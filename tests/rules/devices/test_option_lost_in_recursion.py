"""DEV548, `option-lost-in-recursion`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity

AGAIN = (
    "import torch\n\n\ndef move(x, device, {name}=None):\n    if isinstance(x, list):\n"
    "        return [move(each, device) for each in x]\n    return x.to(device, {name}={name})\n"
)


@pytest.mark.parametrize(
    ("name", "expected"), [("dtype", Severity.WARNING), ("non_blocking", Severity.NOTE)]
)
def test_an_option_lost_in_recursion(name: str, expected: Severity) -> None:
    assert severity("DEV548", AGAIN.format(name=name)) is expected
