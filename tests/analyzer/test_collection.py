"""What judging leaves behind does not pile up in a process that goes on."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest

from tensortrail.analyzer.judging.module import PythonModule, open_project
from tensortrail.analyzer.syntax.trees import Trees
from tensortrail.collector import without_collector
from tensortrail.rules import Rule, all_rules

from .snippets import module_of

OF_CODE = [rule for rule in all_rules().values() if rule.reads_code()]


class Circle:
    def __init__(self) -> None:
        self.own = self


def test_what_was_made_meanwhile_is_collected_with_the_young() -> None:
    with without_collector():
        assert not gc.isenabled()
        left = weakref.ref(Circle())
    assert gc.isenabled()
    gc.collect(0)
    assert left() is None


def test_it_stays_off_where_it_was_off() -> None:
    gc.disable()
    try:
        with without_collector():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("rule", OF_CODE, ids=lambda rule: rule.code)
def test_a_file_that_was_judged_goes_without_a_collection(rule: type[Rule]) -> None:
    """While files are judged there is none: what a circle holds would stay until the end."""
    with without_collector():
        left = [_tree_after(rule, module_of(each.source)) for each in rule.bad]
        assert [each() for each in left] == [None] * len(left)


def _tree_after(rule: type[Rule], module: PythonModule) -> weakref.ref[object]:
    list(rule().check(module))
    module.release()
    module.project.trees = Trees()  # it keeps those it was asked for last
    return weakref.ref(module.tree)


def test_files_make_room_while_one_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that it did not ask about go, the oldest first; those that it did ask about stay."""
    a, b, c, d, e = (str(tmp_path / f"{name}.py") for name in "abcde")
    for path in (a, b, c, d, e):
        Path(path).write_text(f"x = {'1' * 95}\n")
    monkeypatch.setattr("tensortrail.analyzer.facts.project._KEPT", 300)
    project = open_project()
    kept = {path: project.module_at(path) for path in (a, b, c)}
    project.trim()
    assert project.module_at(a) is kept[a]
    project.module_at(d)
    project.module_at(e)
    assert project.module_at(a) is kept[a]
    assert project.module_at(b) is not kept[b]
    assert project.module_at(c) is not kept[c]
