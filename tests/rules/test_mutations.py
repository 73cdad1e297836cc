"""A good example that holds by one guard, keyword, move or wait is no good one without it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import pytest

from tensortrail.rules import Good, Rule, all_rules
from tensortrail.testing import run
from tensortrail.testing.mutations import CHANGES, mutants

pytestmark = pytest.mark.long

TABLE = Path(__file__).with_name("noticed_mutants.json")
NOTICED: dict[str, dict[str, int]] = json.loads(TABLE.read_text(encoding="utf-8"))
"""By rule: the changes to its good examples that it notices, and in how many places at least."""


@pytest.mark.parametrize("code", NOTICED)
def test_a_rule_notices_what_made_its_example_good(code: str) -> None:
    rule, missing = all_rules()[code], Counter(NOTICED[code])
    for good in _good(rule):
        missing -= _noticed(rule, good, missing)
    assert not missing, f"{code} no longer notices so many: {missing}; if it is meant to, say less"


def _noticed(rule: type[Rule], good: Good, kinds: Collection[str] = CHANGES) -> Counter[str]:
    return Counter(
        mutant.name
        for mutant in mutants(good, kinds)
        if run(rule, mutant.source, good.files, good.path)
    )


def _good(rule: type[Rule]) -> Iterator[Good]:
    """With what its bad examples should be, unless something is flagged there still."""
    yield from rule.good
    for bad in rule.bad:
        if bad.better and not run(rule, bad.better, bad.files, bad.path):
            yield Good(bad.better, bad.files, bad.path)


def _all(rules: Iterable[type[Rule]]) -> dict[str, Counter[str]]:
    """What the rules notice, for the table."""
    found: dict[str, Counter[str]] = {}
    for rule in rules:
        found[rule.code] = Counter()
        for good in _good(rule):
            found[rule.code] += _noticed(rule, good)
    return found


def test_every_rule_notices_something() -> None:
    read = {code: rule for code, rule in all_rules().items() if rule.reads_code()}
    new = [rule for code, rule in read.items() if not NOTICED.get(code)]
    assert not new, f"give each a good example that a change makes bad, and write down: {_all(new)}"
    assert read.keys() == NOTICED.keys()
    assert {kind for kinds in NOTICED.values() for kind in kinds} == set(CHANGES)


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("condition turned", "if x and d:\n    g()\n", "if not (x and d):\n    g()\n"),
        ("condition turned", "assert not x\n", "assert x\n"),
        ("half a condition", "y = x and d\n", "y = d\n"),
        ("truth for None", "y = x is not None\n", "y = x\n"),
        ("keyword left out", "g(x, device=d, **more)\n", "g(x, **more)\n"),
        ("keyword left out", "g(x, device=d, **more)\n", "g(x, device=d)\n"),
        ("arguments left out", "g(x, y)\n", "g(x)\n"),
        ("arguments left out", "super().to(x)\n", "super().to()\n"),
        ("element left out", "key = (x, d)\n", "key = (x,)\n"),
        ("move left out", "y = g(x.to(d)) + 1\n", "y = g(x) + 1\n"),
        ("copy left out", "y = copy.deepcopy(x)\n", "y = x\n"),
        ("copy left out", "y = [x.clone()]\n", "y = [x]\n"),
        ("detach left out", "y += x.detach()\n", "y += x\n"),
        ("not called", "save(x.state_dict())\n", "save(x.state_dict)\n"),
        ("attribute left out", "save(x.module.state_dict())\n", "save(x.state_dict())\n"),
        ("device named", "y = x.to(z.device)\n", "y = x.to('cuda')\n"),
        ("cause left out", "raise A() from b\n", "raise A()\n"),
        ("filter left out", "y = [x for x in z if x]\n", "y = [x for x in z]\n"),
        ("guard removed", "if x:\n    g()\n", "g()\n"),
        ("guard removed", "try:\n    g()\nfinally:\n    h()\n", "g()\nh()\n"),
        ("statement left out", "g()\nx = x.to(d)\n", "g()\n"),
        ("statement left out", "a.b = x\n", "pass\n"),
        ("result dropped", "x = x.to(d)\n", "x.to(d)\n"),
        ("leaving left out", "for x in y:\n    break\n", "for x in y:\n    pass\n"),
        ("leaving left out", "def f(self):\n    return self\n", "def f(self):\n    self\n"),
        ("statements swapped", "g(x)\nx = h(x)\n", "x = h(x)\ng(x)\n"),
        ("moved before its block", "with a:\n    g()\n    h()\n", "g()\nwith a:\n    h()\n"),
        (
            "done at each turn",
            "y = g()\nfor x in z:\n    h()\n",
            "for x in z:\n    y = g()\n    h()\n",
        ),
        ("done at each turn", "for x in z:\n    h()\ng()\n", "for x in z:\n    h()\n    g()\n"),
        ("moved into the block", "y = g()\nwith a:\n    h()\n", "with a:\n    y = g()\n    h()\n"),
        ("moved into the block", "with a:\n    h()\ng()\n", "with a:\n    h()\n    g()\n"),
        ("method left out", "class A:\n\n    def f(self):\n        g()\n", "class A:\n    pass\n"),
    ],
)
def test_what_is_changed(kind: str, before: str, after: str) -> None:
    assert after in [each.source for each in mutants(Good(before), [kind])]


@pytest.mark.parametrize(
    ("kind", "before"),
    [
        ("statements swapped", "x = h(y)\ng(x)\n"),
        ("attribute left out", "y = torch.nn.Linear\n"),
        ("device named", "y = torch.device(x)\n"),
        ("arguments left out", "g(x)\n"),
    ],
)
def test_what_is_not(kind: str, before: str) -> None:
    assert not list(mutants(Good(before), [kind]))
