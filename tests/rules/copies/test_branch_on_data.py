"""XFR612: a captured graph asks a tensor which way to go."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.refused import ended

EXPORTED = """\
import torch
class Gate(torch.nn.Module):
    def forward(self, x):
        {body}
torch.export.export(Gate(), (torch.ones(2, 4),))
"""
COMPILED = """\
import torch
@torch.compile(fullgraph=True, backend="eager")
def clip(x):
    {body}
clip(torch.ones(4))
"""


@pytest.mark.parametrize("source", [EXPORTED, COMPILED], ids=["export", "compile"])
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return x / x.max() if x.max() > 1 else x", "the `... if ... else` of line 4"),
        ("while x.max() > 1: x = x / 2", "the `while` of line 4"),
    ],
)
def test_the_line_is_named(tmp_path: Path, source: str, body: str, said: str) -> None:
    seen = ended(tmp_path, source.format(body=body), "XFR612")
    assert said in seen.only.message
    assert seen.only.site.line == 4


@pytest.mark.parametrize("source", [EXPORTED, COMPILED], ids=["export", "compile"])
def test_what_is_advised_works(tmp_path: Path, source: str) -> None:
    body = "return torch.where(x.max() > 1, x / x.max(), x)"
    seen = ended(tmp_path, source.format(body=body), "XFR612")
    assert seen.error is None
    assert not seen.found
