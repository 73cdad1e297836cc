"""STO230, `copy-is-the-original`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity

REBUILT = """
class Sampler:
    def rebuilt(self, settings):
        before = self.net
        {made}
        self.net.load_state_dict(before.state_dict())
"""


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("self.net: Net = build(settings)", None),
        ("self.net: Net", Severity.ERROR),
        ("self.other: Net = build(settings)", Severity.ERROR),
    ],
)
def test_a_name_that_is_bound_again_with_a_type(made: str, expected: Severity | None) -> None:
    assert severity("STO230", REBUILT.format(made=made)) is expected
