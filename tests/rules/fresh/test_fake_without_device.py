"""NEW310, `fake-without-device`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity


@pytest.mark.parametrize(
    ("size", "expected"),
    [("handle_size()", Severity.NOTE), ("data.shape[0]", Severity.WARNING)],
)
def test_a_fake_may_be_given_a_handle(size: str, expected: Severity) -> None:
    source = f"""
    import torch

    @torch.library.register_fake("mine::frames")
    def frames(data: torch.Tensor):
        return torch.empty({size})
    """
    assert severity("NEW310", source) is expected
