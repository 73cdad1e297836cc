"""Whether a file that many others import is used on a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.facts.texts import programs
from tensortrail.analyzer.judging import project_gpus
from tensortrail.analyzer.judging.engine import check
from tensortrail.findings import Severity

SCALED = """\
import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(x) * torch.tensor([0.5, 0.4, 0.3])
"""
USED = "from net.scaled import Scaled\n\nprint(Scaled()(read()){moved})\n"


@pytest.mark.parametrize(
    ("moved", "expected"), [("", Severity.NOTE), (".cuda()", Severity.WARNING)]
)
@pytest.mark.usefixtures("as_the_rule_says")
def test_no_gpu_in_those_that_are_looked_at_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: str, expected: Severity
) -> None:
    for module in (programs, project_gpus):
        monkeypatch.setattr(module, "MOST", 4)
    (tmp_path / "setup.py").write_text("")
    (tmp_path / "net").mkdir()
    files = {"__init__": "", "scaled": SCALED}
    files |= {f"model_{number}": USED.format(moved=moved) for number in range(5)}
    for name, text in files.items():
        (tmp_path / "net" / f"{name}.py").write_text(text)
    request = CheckRequest(paths=(str(tmp_path),), cache_dir=None, codes=frozenset({"DEV521"}))
    assert [each.severity for each in check(request).findings] == [expected]
