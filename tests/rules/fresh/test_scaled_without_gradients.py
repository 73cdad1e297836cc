"""NEW320: a gradient scaler and an optimizer whose weights have no gradients."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.refused import ended, mended

SOURCE = """\
import torch
encoder, head = torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
features = encoder(torch.ones(2, 4)){cut}
scaler.scale(head(features).sum()).backward()
scaler.step(optimizer)
"""


def test_what_cut_the_graph(tmp_path: Path) -> None:
    seen = ended(tmp_path, SOURCE.format(cut=".detach()"), "NEW320")
    assert "`encoder.weight` and `encoder.bias`, which have no gradients" in seen.only.message
    assert "the graph ends at `.detach()` at program.py:5" in seen.only.message
    mended(tmp_path, seen, "NEW320")


def test_frozen_weights(tmp_path: Path) -> None:
    source = SOURCE.format(cut="").replace(
        "optimizer =", "encoder.requires_grad_(False)\noptimizer ="
    )
    seen = ended(tmp_path, source, "NEW320")
    assert "they are frozen at program.py:3" in seen.only.message


def test_gradients_that_are_there(tmp_path: Path) -> None:
    seen = ended(tmp_path, SOURCE.format(cut=""), "NEW320")
    assert seen.error is None
    assert not seen.found
