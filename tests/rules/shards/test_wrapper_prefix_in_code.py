"""SHD409, `wrapper-prefix`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity


@pytest.mark.parametrize(
    ("wrapped", "expected"), [("model", Severity.NOTE), ("other", Severity.NOTE)]
)
def test_training_goes_on_from_files_of_wrapped_models(wrapped: str, expected: Severity) -> None:
    source = f"""
import torch
from torch import nn

def train(args, net, other):
    model = nn.DataParallel(net)
    {wrapped}.load_state_dict(torch.load(args.resume, map_location="cpu"))
    torch.save(model.state_dict(), args.out)
"""
    assert severity("SHD409", source) is expected
