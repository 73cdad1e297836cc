"""STO225: what a checkpointed module keeps from one run to the next."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.refused import ended

SOURCE = """\
import torch
from torch.utils.checkpoint import checkpoint
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.keys, self.cache = torch.nn.Linear(4, 4), None
    def forward(self, x):
        keys = self.keys(x)
        if self.cache is not None:
            keys = torch.cat([self.cache, keys])
        {keep}
        return torch.softmax(x @ keys.T, -1) @ keys
block = Block()
x = torch.ones(2, 4, requires_grad=True)
checkpoint({run}, x, use_reentrant=False).sum().backward()
"""


@pytest.mark.parametrize("run", ["block", "lambda x: block(x)"])
def test_a_cache(tmp_path: Path, run: str) -> None:
    seen = ended(tmp_path, SOURCE.format(keep="self.cache = keys.detach()", run=run), "STO225")
    assert "changes `block.cache` (program.py:11)" in seen.only.message
    assert "set it outside" in seen.only.fixes[0].description


def test_without_it(tmp_path: Path) -> None:
    seen = ended(tmp_path, SOURCE.format(keep="last = keys.detach()", run="block"), "STO225")
    assert seen.error is None
    assert not seen.found
