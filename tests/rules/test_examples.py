"""Every rule is run over its own examples."""

from __future__ import annotations

import pytest

from tensortrail.rules import Rule, all_rules
from tensortrail.testing import check_examples

pytestmark = pytest.mark.long


@pytest.mark.parametrize("rule", all_rules().values(), ids=lambda rule: rule.code)
def test_examples(rule: type[Rule]) -> None:
    check_examples(rule)


def test_names_and_codes_are_unique() -> None:
    rules = list(all_rules().values())
    assert len({rule.name for rule in rules}) == len(rules)
    assert len({rule.code for rule in rules}) == len(rules)
