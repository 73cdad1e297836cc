"""Every rule is run over its own examples."""

from __future__ import annotations

import re

import pytest

from tensortrail.rules import Rule, all_rules
from tensortrail.testing import check_examples, run

pytestmark = pytest.mark.long
OF_CODE = [rule for rule in all_rules().values() if rule.reads_code()]
NAMELESS = re.compile(r"this (also |only )?(?!class\b)(may|will|[a-z]+s)\b")
"""`this is on the CPU`: what is? In a list of findings nothing else says."""


@pytest.mark.parametrize("rule", all_rules().values(), ids=lambda rule: rule.code)
def test_examples(rule: type[Rule]) -> None:
    check_examples(rule)


@pytest.mark.parametrize("rule", OF_CODE, ids=lambda rule: rule.code)
def test_a_message_names_what_it_speaks_of(rule: type[Rule]) -> None:
    for bad in rule.bad:
        for found in run(rule, bad.source, dict(bad.files)):
            assert not NAMELESS.match(found.message), found.message


def test_names_and_codes_are_unique() -> None:
    rules = list(all_rules().values())
    assert len({rule.name for rule in rules}) == len(rules)
    assert len({rule.code for rule in rules}) == len(rules)
