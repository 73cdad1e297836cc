"""The way to a new rule, as CONTRIBUTING.md describes it."""

from __future__ import annotations

import re
import sys
import textwrap
import types
from pathlib import Path

import pytest

from tensortrail.cli import new_rule
from tensortrail.rules import Bad, Good, Rule, all_rules
from tensortrail.testing import check_examples, check_page

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"


def test_the_example_of_contributing_is_a_rule() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", CONTRIBUTING.read_text(), re.DOTALL)
    module = types.ModuleType("example")
    exec(compile(textwrap.dedent(block), str(CONTRIBUTING), "exec"), vars(module))
    rule = module.NumpyWithoutCpu
    check_examples(rule)
    assert rule.code == all_rules()[rule.code].code
    assert rule.name == all_rules()[rule.code].name


def test_a_page_with_an_empty_section_is_refused() -> None:
    class Empty(Rule):
        """A risk.

        ## What it does
        ## Why is this bad?
        ## Example
        ## Fix safety
        ## References
        """

        code = "DEV998"
        name = "empty"
        bad = (Bad("x\n", lines=(1,)),)
        good = (Good("y\n"),)

    with pytest.raises(AssertionError, match="'What it does' of its page is empty"):
        check_page(Empty)


def test_a_new_rule_can_be_imported_and_names_what_is_missing(tmp_path: Path) -> None:
    files = new_rule.write(tmp_path, "DEV998", "some-risk", "batches")
    assert [each.relative_to(tmp_path).as_posix() for each in files] == [
        "tensortrail/rules/devices/batches/some_risk.py",
        "tests/rules/devices/test_some_risk.py",
        "docs/rules/some-risk.md",
    ]
    module = types.ModuleType("some_risk")
    sys.modules["some_risk"] = module
    exec(compile(files[0].read_text(), str(files[0]), "exec"), vars(module))
    rule = module.SomeRisk
    check_examples(rule)
    assert rule.watches_runs()
    assert rule.reads_code()
    assert not rule.default
    compile(files[1].read_text(), str(files[1]), "exec")
    assert files[2].read_text().startswith("# some-risk (DEV998)\n\nTODO: one sentence")
    with pytest.raises(SystemExit, match="there already"):
        new_rule.write(tmp_path, "DEV998", "some-risk", "batches")


def test_taken_and_free_codes() -> None:
    assert "is numpy-without-cpu" in new_rule.refusal("DEV503", "another-name")
    assert "a rule of the name" in new_rule.refusal("DEV998", "numpy-without-cpu")
    assert "not a code of a family" in new_rule.refusal("ABC501", "some-risk")
    assert "not a name for a rule" in new_rule.refusal("DEV998", "Some Risk")
    assert "devices has batches, calls" in new_rule.refusal("DEV998", "some-risk")
    assert "storage has no folders" in new_rule.refusal("STO998", "some-risk", "batches")
    assert not new_rule.refusal("DEV998", "some-risk", "batches")
    assert not new_rule.refusal("STO998", "some-risk")
    assert all(new_rule.free_code(prefix) not in all_rules() for prefix in new_rule.FAMILIES)
