"""Rules are found, the house's own and other packages', with no list to edit."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from tensortrail import rules
from tensortrail.findings import Finding
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.testing import check_examples


class NoSleep(Rule):
    """A rule of another package.

    ## What it does
    Flags `time.sleep`.
    ## Why is this bad?
    It waits.
    ## Fix safety
    No fix.
    ## References
    - none
    """

    code = "EXT101"
    name = "no-sleep"
    triggers = ("sleep",)
    bad = (Bad("import time as t\nt.sleep(1)\n", lines=(2,), instead="import time\n"),)
    good = (Good("def sleep(): ...\nsleep()\n"),)

    def check(self, module: Module) -> Iterator[Finding]:
        for call in module.calls("time.sleep"):
            yield self.finding(module, call, "it waits")


@pytest.fixture
def with_entry_point(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    def entry_points(group: str) -> list[EntryPoint]:
        return [EntryPoint("ext", f"{__name__}:NoSleep", group)]

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    rules.all_rules.cache_clear()
    yield "EXT101"
    rules.all_rules.cache_clear()


def test_a_rule_of_another_package(with_entry_point: str) -> None:
    assert rules.all_rules()[with_entry_point] is NoSleep
    assert "OFF101" in rules.all_rules()


def test_it_is_tested_with_our_helper() -> None:
    check_examples(NoSleep)


def test_the_helper_sees_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NoSleep, "bad", (Bad("x = 1\n", lines=(1,)),))
    with pytest.raises(AssertionError, match="flags lines"):
        check_examples(NoSleep)
    monkeypatch.setattr(NoSleep, "bad", (Bad("import time\ntime.sleep(2)\n", lines=(2,)),))
    monkeypatch.setattr(NoSleep, "triggers", ("slumber",))
    with pytest.raises(AssertionError, match="triggers miss"):
        check_examples(NoSleep)
    monkeypatch.setattr(NoSleep, "triggers", ("sleep",))
    monkeypatch.setattr(NoSleep, "good", (Good("import time\ntime.sleep(2)\n"),))
    with pytest.raises(AssertionError, match="flags a good example"):
        check_examples(NoSleep)
    monkeypatch.setattr(NoSleep, "good", (Good("import time\n"),))
    with pytest.raises(AssertionError, match="for the page"):
        check_examples(NoSleep)
    asked = Bad("import time\ntime.sleep(2)\n", lines=(2,), instead="import time\ntime.sleep(1)\n")
    monkeypatch.setattr(NoSleep, "bad", (asked,))
    with pytest.raises(AssertionError, match="flags what it asks for"):
        check_examples(NoSleep)


def test_every_file_of_a_family_is_discovered() -> None:
    folder = Path(rules.__file__).parent
    classes = {
        node.name
        for file in folder.rglob("*/*.py")
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
        and any(isinstance(base, ast.Name) and base.id == "Rule" for base in node.bases)
    }
    assert classes == {rule.__name__ for rule in rules.all_rules().values()}
