"""NEW308, `buffer-not-restored`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity

COPIED = """
from torch import nn

class Made(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.register_buffer("{name}", table, persistent=False)

class Rotated(nn.Module):
    def __init__(self, other):
        super().__init__()
        for name, value in other.named_buffers():
            if name.startswith("scale_"):
                self.register_buffer(name, value.data)
"""


@pytest.mark.parametrize(("name", "expected"), [("scale_a", Severity.WARNING), ("table", None)])
def test_buffers_that_are_copied_by_their_name(name: str, expected: Severity | None) -> None:
    assert severity("NEW308", COPIED.format(name=name)) is expected
