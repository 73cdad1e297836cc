"""A state dict that is kept for its names and shapes only."""

from __future__ import annotations

import pytest

from tests.rules.judged import findings

KEPT = """
import torch

def load(model, new):
    old = model.state_dict()
    for param in model.parameters():
        param.data = param.data.to(torch.float32)

    def compared(new, old):
        return [key for key in new if key in old and new[key].shape {sign} old[key]{read}]

    return {use}
"""


@pytest.mark.parametrize(
    ("use", "read", "count"),
    [
        ("[key for key in new if key in old]", ".shape", 0),
        ("[key for key in old.keys()], len(old), old['a'].numel()", ".shape", 0),
        ("compared(new, old)", ".shape", 0),
        ("compared(new, old)", ".mean()", 1),
        ("other(new, old)", ".shape", 1),
        ("[key for key in old if new[key] is old[key]]", ".shape", 1),
        ("old.values()", ".shape", 1),
    ],
)
def test_only_values_are_old(use: str, read: str, count: int) -> None:
    source = KEPT.format(use=use, sign="!=", read=read)
    assert len(findings("SHD411", source)) == count
