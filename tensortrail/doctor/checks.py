"""What a report says of each check: that it ran, or why it did not."""

from __future__ import annotations

from typing import NamedTuple

NOT_SELECTED = "not selected"


class Check(NamedTuple):
    code: str
    name: str
    left_out: str
    """Why it did not run; "" if it did."""
