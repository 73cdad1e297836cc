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
    [("print(device)", Severity.WARNING), ("raise NotImplementedError", Severity.NOTE)],
)
def test_what_nothing_comes_to(first: str, expected: Severity) -> None:
    assert severity("DEV595", BEHIND.format(first=first)) is expected


@pytest.mark.parametrize(
    ("first", "expected"),
    [("import argparse", Severity.ERROR), ("import math", Severity.WARNING)],
)
def test_a_program_is_run_and_a_module_may_not_be(first: str, expected: Severity) -> None:
    assert severity("DEV595", f"{first}\n{BEHIND.format(first='print(device)')}") is expected
