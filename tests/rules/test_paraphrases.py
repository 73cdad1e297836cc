"""A finding is kept when its code is written otherwise, and its look-alike stays silent."""

from __future__ import annotations

import ast
import json
from functools import cache
from pathlib import Path

import pytest

from tensortrail.rules import Bad, Good, all_rules
from tensortrail.testing import paraphrases
from tensortrail.testing.paraphrases import REWRITES
from tensortrail.testing.surviving import Outcome, outcomes

pytestmark = pytest.mark.long

HOLES = json.loads((Path(__file__).parent / "paraphrase_holes.json").read_text(encoding="utf-8"))
"""By rewrite: the bad examples ("CODE:number") that lose their finding, and the reason."""
ENOUGH = 0.9


@cache
def every_outcome() -> tuple[Outcome, ...]:
    rules = [rule for rule in all_rules().values() if rule.reads_code()]
    return tuple(outcome for rule in rules for outcome in outcomes(rule))


@pytest.mark.complete
def test_most_findings_are_kept() -> None:
    bad = [each for each in every_outcome() if each.is_bad]
    kept = sum(each.as_it_should for each in bad)
    assert kept >= ENOUGH * len(bad), f"{kept} of {len(bad)}"


def test_good_examples_stay_silent() -> None:
    flagged = [
        f"{each.code}:{each.number} {each.rewrite}\n{each.source}"
        for each in every_outcome()
        if not each.is_bad and not each.as_it_should
    ]
    assert not flagged, "\n".join(flagged)


@pytest.mark.parametrize("rewrite", REWRITES)
def test_what_is_lost_is_known(rewrite: str) -> None:
    lost = {
        f"{each.code}:{each.number}"
        for each in every_outcome()
        if each.is_bad and not each.as_it_should and each.rewrite == rewrite
    }
    listed = {pair for group in HOLES.get(rewrite, []) for pair in group["lost"]}
    assert lost - listed == set(), "mend these, or list them with the reason"
    assert listed - lost == set(), "these are kept now: take them off the list"


def test_every_hole_has_a_reason() -> None:
    assert HOLES.keys() <= REWRITES.keys()
    assert all(group["why"] and group["lost"] for groups in HOLES.values() for group in groups)


BODY = """\
import torch

def finish(loss: torch.Tensor, device):
    moved = loss.to(device)
    if moved.is_cuda:
        return moved
    print(loss)
"""


@pytest.mark.parametrize(
    ("rewrite", "expected"),
    [
        ("rename", "def finish(v1: torch.Tensor, v0):"),
        ("named condition", "    asked = moved.is_cuda\n    if asked:"),
        ("walrus", "    if (moved := loss.to(device)).is_cuda:"),
        ("helper function", "    return finish_of(loss, device)"),
        ("method", "class Holder:\n\n    def finish(self, loss: torch.Tensor, device):"),
        ("inverted if", "    if not moved.is_cuda:\n        pass\n    else:"),
        ("late return", "    else:\n        print(loss)"),
        ("match", "    match bool(moved.is_cuda):\n        case True:"),
        ("keyword argument", "loss.to(device=device)"),
        ("aliased import", "import torch as torch_"),
        ("annotation to assertion", "    assert isinstance(loss, torch.Tensor)"),
        ("annotation as text", "loss: 'torch.Tensor'"),
        ("one line", "moved = loss.to(device)"),
        ("after the colon", "    if moved.is_cuda: return moved"),
        ("many lines", "loss.to(\n        device)"),
    ],
)
def test_a_rewrite_does_what_its_name_says(rewrite: str, expected: str) -> None:
    found = {each.name: each for each in paraphrases(Good(BODY))}
    if rewrite == "one line":
        assert rewrite not in found  # nothing stands side by side here
        return
    assert expected in found[rewrite].source
    ast.parse(found[rewrite].source)


def test_what_moves_to_another_file_comes_with_it() -> None:
    source = "import torch\n\nclass Net(torch.nn.Module):\n    def f(self):\n        g('cpu')\n"
    found = {each.name: each for each in paraphrases(Bad(source, lines=(3,)))}
    base = found["base in another file"]
    assert "class Net(Base1):" in base.source
    assert "class Base1(torch.nn.Module):" in base.files["paraphrase_bases.py"]
    constant = found["constant in another file"]
    assert "g(WORD_1)" in constant.source
    assert constant.files["paraphrase_constants.py"] == "WORD_1 = 'cpu'\n"
