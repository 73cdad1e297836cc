"""STO229, `expanded-written`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity

NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR


@pytest.mark.parametrize(
    ("sizes", "write", "expected"),
    [
        ("n, 4, 4", "x[0, 1] = 2", WARNING),
        ("n, 4, 4", "x[:, :3] = 2", NOTE),
        ("n, 4, 4", "x[..., 3] = 2", NOTE),
        ("-1, n, 4", "x[:, i] = 2", WARNING),
        ("-1, n, 4", "x[i] = 2", NOTE),
        ("n, 4, 4", "x += 2", NOTE),
    ],
)
def test_a_write_to_rows_that_are_one(sizes: str, write: str, expected: Severity) -> None:
    source = (
        f"import torch\n\ndef f(n, i):\n    x = torch.eye(4)[None].expand({sizes})\n    {write}\n"
    )
    assert severity("STO229", source) is expected
