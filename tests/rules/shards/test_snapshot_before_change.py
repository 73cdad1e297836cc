"""SHD411, `snapshot-before-change`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("self.data.next()", Severity.NOTE),
        ("self.data.train()", Severity.WARNING),
        ("self.data(3)", Severity.WARNING),
    ],
)
def test_whatever_has_a_state_may_be_data(use: str, expected: Severity) -> None:
    source = (
        "class Loop:\n    def end(self):\n        self.kept = self.data.state_dict()\n\n"
        f"    def run(self):\n        {use}\n\n"
        "    def restore(self):\n        self.data.load_state_dict(self.kept)\n"
    )
    assert severity("SHD411", source) is expected
