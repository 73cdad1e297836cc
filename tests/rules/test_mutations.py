"""A good example that holds by one guard, keyword, move or wait is no good one without it."""

from __future__ import annotations

import pytest

from tensortrail.rules import Good, all_rules
from tensortrail.testing import run
from tensortrail.testing.mutations import mutants

NOTICED = {
    "DEV501": {"half a condition": 1},
    "DEV503": {"guard removed": 1},
    "DEV504": {"keyword left out": 1},
    "DEV505": {"guard removed": 1},
    "DEV506": {"keyword left out": 1, "statement left out": 2},
    "DEV507": {"condition turned": 2},
    "DEV509": {"statement left out": 1},
    "DEV510": {"guard removed": 1},
    "DEV519": {"keyword left out": 2, "move left out": 1},
    "DEV520": {"move left out": 1},
    "DEV521": {"guard removed": 1, "move left out": 1},
    "DEV522": {"move left out": 1},
    "DEV523": {"condition turned": 2, "move left out": 2},
    "DEV524": {"move left out": 5},
    "DEV525": {"move left out": 1},
    "DEV526": {"keyword left out": 13, "move left out": 1},
    "DEV527": {"keyword left out": 1},
    "DEV528": {"move left out": 1, "keyword left out": 2},
    "DEV529": {"move left out": 3},
    "DEV530": {"move left out": 1},
    "DEV531": {"move left out": 1},
    "DEV532": {"guard removed": 1, "move left out": 1},
    "DEV534": {"move left out": 1},
    "DEV535": {"guard removed": 1},
    "DEV536": {"move left out": 1},
    "DEV537": {"guard removed": 1, "move left out": 1},
    "DEV538": {"guard removed": 1, "move left out": 1},
    "DEV540": {"move left out": 1},
    "NEW303": {"keyword left out": 2},
    "NEW305": {"move left out": 1},
    "NEW308": {"statement left out": 1},
    "NEW309": {"statement left out": 1, "move left out": 1},
    "NEW310": {"keyword left out": 1, "move left out": 1},
    "OFF101": {"guard removed": 2, "condition turned": 2},
    "OFF102": {"keyword left out": 1, "statement left out": 1, "move left out": 1},
    "OFF103": {"half a condition": 2},
    "OFF104": {"half a condition": 1, "guard removed": 1},
    "OFF106": {"guard removed": 1},
    "OFF107": {"move left out": 2},
    "OFF109": {"keyword left out": 1, "statement left out": 1},
    "OFF110": {"statement left out": 1},
    "OFF114": {"guard removed": 1, "move left out": 1},
    "OFF115": {"guard removed": 4, "half a condition": 1},
    "SHD401": {"guard removed": 1, "condition turned": 1},
    "SHD405": {"statement left out": 1},
    "SHD407": {"guard removed": 1},
    "SHD412": {"keyword left out": 1},
    "SHD414": {"keyword left out": 1, "statement left out": 1},
    "STO201": {"guard removed": 2, "half a condition": 1},
    "STO203": {"condition turned": 1},
    "STO205": {"guard removed": 1},
    "STO208": {"guard removed": 1, "condition turned": 1},
    "STO210": {"move left out": 1},
    "STO211": {"statement left out": 1},
    "STO212": {"detach left out": 1},
    "XFR601": {"move left out": 1, "statement left out": 1},
    "XFR605": {"statement left out": 4},
}
"""By rule: the changes to its good examples that it notices, and in how many places at least."""


@pytest.mark.parametrize("code", NOTICED)
def test_a_rule_notices_what_made_its_example_good(code: str) -> None:
    rule = all_rules()[code]
    found: dict[str, int] = {}
    right = [Good(each.instead, each.files, each.path) for each in rule.bad if each.instead]
    for good in (*rule.good, *right):
        for mutant in mutants(good):
            if run(rule, mutant.source, good.files, good.path):
                found[mutant.name] = found.get(mutant.name, 0) + 1
    missing = {name: count for name, count in NOTICED[code].items() if found.get(name, 0) < count}
    assert not missing, f"{code} no longer notices {missing}: it sees {found}"


def test_what_is_changed() -> None:
    source = "def f(x, d):\n    if x and d:\n        g(x, device=d)\n"
    found = [(each.name, each.source) for each in mutants(Good(source))]
    assert ("guard removed", "def f(x, d):\n    g(x, device=d)\n") in found
    assert ("keyword left out", "def f(x, d):\n    if x and d:\n        g(x)\n") in found
    assert ("half a condition", "def f(x, d):\n    if x and x:\n        g(x, device=d)\n") in found
    assert ("statement left out", "def f(x, d):\n    if x and d:\n        None\n") in found
    moved = mutants(Good("y = g(x.to(d)) + 1\n"))
    assert [(each.name, each.source) for each in moved] == [("move left out", "y = g(x) + 1\n")]
    assert any(name == "condition turned" and "not (x and d)" in text for name, text in found)
