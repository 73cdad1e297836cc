"""Siblings of a finding have its risk, not only its shape."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.judging.engine import check
from tensortrail.findings import Finding

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


def checked(folder: Path) -> Sequence[Finding]:
    return check(
        CheckRequest(paths=(str(folder),), cache_dir=None, codes=frozenset({"DEV504"}))
    ).findings


def test_a_result_that_is_used_is_no_sibling_of_one_that_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(DROPPED)
    (tmp_path / "other.py").write_text(OTHERS)
    flagged = [each for each in checked(tmp_path) if each.site.line == 6]
    assert [each.code for each in flagged] == ["DEV504"]
    places = [(Path(each.file).name, each.line) for each in flagged[0].siblings]
    assert places == [("other.py", 2)]


def test_very_large_files_are_not_looked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tensortrail.analyzer.judging.sibling_search._LARGEST", len(OTHERS))
    (tmp_path / "one.py").write_text(DROPPED)
    (tmp_path / "other.py").write_text(OTHERS)
    (tmp_path / "large.py").write_text(OTHERS + "x = 1\n")
    files = {Path(place.file).name for each in checked(tmp_path) for place in each.siblings}
    assert files == {"other.py"}


SAVED = """\
import torch

def keep(net, optimizer, path):
    net = torch.compile(net)
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, path)
"""


def test_a_call_that_says_nothing_but_its_object_has_no_siblings(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(SAVED)
    (finding,) = check(
        CheckRequest(paths=(str(tmp_path),), cache_dir=None, codes=frozenset({"SHD409"}))
    ).findings
    assert finding.siblings == ()


LEFT_BEHIND = """\
import torch
from torch import nn

class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = torch.linspace(0.5, 1.5, 5)

    def loss(self, logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(logits, y, weight=self.weights)

model = Scorer().to("cuda")
"""


def test_one_mistake_is_one_finding_and_not_its_own_sibling(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(LEFT_BEHIND)

    def told(*codes: str) -> Sequence[Finding]:
        chosen = frozenset(codes)
        return check(CheckRequest((str(tmp_path),), cache_dir=None, codes=chosen)).findings

    assert [each.code for each in told("DEV525")] == ["DEV525"]
    (finding,) = told("DEV525", "OFF107")
    assert finding.code == "OFF107"
    assert finding.siblings == ()
    (tmp_path / "two.py").write_text(LEFT_BEHIND)
    first, second = told("DEV525", "OFF107")
    assert first.siblings == second.siblings == (), "both are reported"


BESIDE = """\
from nets import Net

class Agent:
    def __init__(self, size, device):
        self.policy = Net(size).to(device)
        self.target = Net(size)
        self.target.load_state_dict(self.policy.state_dict())

    def values(self, state, device):
        return self.policy(state.to(device)), self.target(state.to(device))
"""


def test_what_the_trail_tells_of_is_no_sibling(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(BESIDE)
    (tmp_path / "other.py").write_text("from nets import Net\n\ndef made(n):\n    return Net(n)\n")
    (finding,) = check(
        CheckRequest(paths=(str(tmp_path),), cache_dir=None, codes=frozenset({"DEV585"}))
    ).findings
    assert finding.site.line == 6
    assert [Path(each.file).name for each in finding.siblings] == ["other.py"]
