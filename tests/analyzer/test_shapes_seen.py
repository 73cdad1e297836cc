"""Siblings of files that have not changed are known from the last check, and only of those."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.judging.engine import check
from tensortrail.analyzer.reading.texts import Texts

DROPPED = """\
import torch

def finish(losses: torch.Tensor):
    losses.sum().clone().cpu()
"""
ALIKE = """\
def other(values):
    values.sum().clone().cpu()
"""
MOVED = f"# another line\n{ALIKE}"


def places(folder: Path, *names: str, siblings: bool = True) -> Sequence[tuple[str, int]]:
    request = CheckRequest(
        paths=tuple(str(folder / name) for name in names) or (str(folder),),
        cache_dir=str(folder / "cache"),
        root=str(folder),
        codes=frozenset({"DEV504"}),
        siblings=siblings,
    )
    found = check(request).findings
    return [(Path(site.file).name, site.line) for each in found for site in each.siblings]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "one.py").write_text(DROPPED)
    (tmp_path / "two.py").write_text(ALIKE)
    (tmp_path / "three.py").write_text("x = 1\n")
    assert places(tmp_path) == [("two.py", 2)]
    return tmp_path


def test_unchanged_files_are_not_read_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(_: Texts, path: str) -> bytes:
        raise AssertionError(f"{path} was read")

    monkeypatch.setattr(Texts, "of", read)
    assert places(project) == [("two.py", 2)]


def test_a_changed_file_is_looked_through_again(project: Path) -> None:
    (project / "two.py").write_text(MOVED)
    assert places(project) == [("two.py", 3)]
    (project / "three.py").write_text(ALIKE)
    assert places(project) == [("three.py", 2), ("two.py", 3)]
    (project / "two.py").write_text("x = 1\n")
    assert places(project) == [("three.py", 2)]


def test_files_come_and_go(project: Path) -> None:
    (project / "four.py").write_text(ALIKE)
    assert places(project) == [("four.py", 2), ("two.py", 2)]
    (project / "two.py").unlink()
    assert places(project) == [("four.py", 2)]


def test_a_check_of_fewer_files_says_nothing_of_the_others(project: Path) -> None:
    assert places(project, "one.py", "three.py") == []
    assert places(project) == [("two.py", 2)]


def test_a_check_that_does_not_look_for_them_leaves_nothing_stale(project: Path) -> None:
    (project / "two.py").write_text(MOVED)
    assert places(project, siblings=False) == []
    assert places(project) == [("two.py", 3)]


def test_another_finding_is_looked_for_everywhere(project: Path) -> None:
    (project / "one.py").write_text(DROPPED.replace("sum", "mean"))
    assert places(project) == []
    (project / "one.py").write_text(DROPPED)
    assert places(project) == [("two.py", 2)]
