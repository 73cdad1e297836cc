"""OFF121, `guard-never-true`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity

NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR


@pytest.mark.parametrize(("waits", "expected"), [("no_sync", None), ("synchronize", WARNING)])
def test_a_branch_that_never_runs(waits: str, expected: Severity | None) -> None:
    source = (
        "class Loop:\n    def __init__(self, model):\n        self.use_ddp = False\n"
        "        self.model = model\n\n    def step(self):\n        if self.use_ddp:\n"
        f"            self.model.{waits}()\n"
    )
    assert severity("OFF121", source) is expected
