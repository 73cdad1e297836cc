"""DEV573, `device-taken-for-text`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity


@pytest.mark.parametrize(("library", "expected"), [("torch", Severity.ERROR), ("tensorflow", None)])
def test_tensors_of_another_library(library: str, expected: Severity | None) -> None:
    source = (
        f"import {library}\n\n\ndef place(x):\n"
        "    rows = x.unsqueeze(0).contiguous().expand_as(x)\n"
        "    device = x.device\n    return rows, 'cuda' in device\n"
    )
    assert severity("DEV573", source) is expected
