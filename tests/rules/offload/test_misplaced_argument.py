"""OFF112, `misplaced-argument`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity

NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR


@pytest.mark.parametrize(
    ("call", "expected"),
    [("gathered(self, outputs, output_device)", None), ("gathered(outputs, output_device)", ERROR)],
)
def test_a_function_that_is_given_self(call: str, expected: Severity | None) -> None:
    source = (
        "import torch\n\ndef gathered(net, outputs, output_device):\n    return outputs\n\n\n"
        "class Net(torch.nn.DataParallel):\n    def gather(self, outputs, output_device):\n"
        f"        return {call}\n"
    )
    assert severity("OFF112", source) is expected
