"""NEW321, `buffer-name-taken`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity


@pytest.mark.parametrize(("taken", "expected"), [("self.__dict__", None), ("kept", Severity.ERROR)])
def test_a_name_may_be_taken_back(taken: str, expected: Severity | None) -> None:
    source = f"""
    import torch
    from torch import nn

    class Tile(nn.Module):
        def __init__(self, kept):
            super().__init__()
            self.scales = torch.ones(3)
            scales = {taken}.pop("scales")
            self.register_buffer("scales", scales)
    """
    assert severity("NEW321", source) is expected
