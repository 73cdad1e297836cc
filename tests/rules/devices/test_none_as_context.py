"""DEV662 none-as-context, on code."""

from __future__ import annotations

import pytest

from tests.rules.judged import HEAD, lines


@pytest.mark.parametrize(
    ("given", "before", "found"),
    [
        ("where: torch.device = None", "pass", True),
        ("where=None", "x = build().to(where)", True),
        ("where=None", "x = build()", False),
        ("where=None", "where = where or torch.device('cpu')", False),
        ("where: torch.device", "pass", False),
        (
            "where: torch.device = None",
            "if isinstance(where, str):\n        where = torch.device(where)\n"
            "    elif where is None:\n        where = torch.device('cpu')",
            False,
        ),
        ("where: torch.device = None", "assert where is not None", False),
    ],
)
def test_devices_that_are_entered(given: str, before: str, found: bool) -> None:
    source = f"{HEAD}def made(build, {given}):\n    {before}\n    with where:\n        build()\n"
    assert bool(lines("DEV662", source)) is found
