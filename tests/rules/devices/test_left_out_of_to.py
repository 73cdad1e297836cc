"""DEV551, `left-out-of-to`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import HEAD, severity


@pytest.mark.parametrize(
    ("base", "first", "expected"),
    [
        ("nn.Module", "super()._apply(fn)", None),
        ("object", "print(fn)", Severity.WARNING),
    ],
)
def test_what_the_base_moves(base: str, first: str, expected: Severity | None) -> None:
    source = (
        HEAD + f"class Model({base}):\n    def __init__(self, config):\n"
        "        super().__init__()\n        self.body, self.head = build(config)\n\n"
        "    def forward(self, x):\n        return self.head(self.body(x))\n\n"
        f"    def _apply(self, fn):\n        {first}\n"
        "        self.head.steps = fn(self.head.steps)\n        return self\n"
    )
    assert severity("DEV551", source) is expected
