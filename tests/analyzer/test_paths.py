"""Paths are taken apart as pathlib does it, which is not imported for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.analyzer.facts.project_top import and_above, inside
from tensortrail.analyzer.syntax.names import tidy

_WRITTEN = "a.py ./a.py a//b.py a/./b.py /a/b/ . .. ../a.py a/../b.py .a/.b /".split()


@pytest.mark.parametrize("path", [*_WRITTEN, ""])
def test_a_path_is_tidy_as_of_pathlib(path: str) -> None:
    assert tidy(path) == str(Path(path))


@pytest.mark.parametrize("path", _WRITTEN)
def test_folders_above_are_those_of_pathlib(path: str) -> None:
    folder = Path(path)
    assert list(and_above(tidy(path), 2)) == [str(each) for each in (folder, *folder.parents)][:3]


@pytest.mark.parametrize("path", _WRITTEN)
def test_what_lies_inside_is_written_as_by_pathlib(path: str) -> None:
    assert inside(tidy(path), "b", "c.py") == str(Path(path) / "b" / "c.py")
