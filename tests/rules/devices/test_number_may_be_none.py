"""DEV661 number-may-be-none, on code."""

from __future__ import annotations

import pytest

from tests.rules.judged import HEAD, lines


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('f"{d.type}:{d.index}"', True),
        ('f"{d.type}:{d.index}" if d.index is not None else d.type', False),
        ('f"{d.type}:{d.index or 0}"', False),
        ('f"{d.type}-{d.index}"', False),
        ('f"on {d.type}:{d.index}"', False),
    ],
)
def test_devices_as_texts(text: str, found: bool) -> None:
    assert bool(lines("DEV661", f"{HEAD}def named(d):\n    return {text}\n")) is found
