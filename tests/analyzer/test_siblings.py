"""Siblings of a finding have its risk, not only its shape."""

from __future__ import annotations

from pathlib import Path

from tensortrail.analyzer.engine import check
from tensortrail.analyzer.request import CheckRequest

DROPPED = """\
import torch

def finish(losses: torch.Tensor, target):
    losses.rescaled_by(target).detach()
    losses.detach().rescaled_by(2).cpu()
    losses.sum().clone().cpu()
"""
OTHERS = """\
def dropped_too(values):
    values.sum().clone().cpu()

def used(values):
    kept = values.sum().clone().cpu()
    return kept, values.sum().clone().cpu()
"""


def test_a_result_that_is_used_is_no_sibling_of_one_that_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(DROPPED)
    (tmp_path / "other.py").write_text(OTHERS)
    found = check(CheckRequest(paths=(str(tmp_path),), cache_dir=None, codes=frozenset({"DEV504"})))
    flagged = [each for each in found.findings if each.site.line == 6]
    assert [each.code for each in flagged] == ["DEV504"]
    places = [(Path(each.file).name, each.line) for each in flagged[0].siblings]
    assert places == [("other.py", 2)]
