"""A file that ends the process which judges it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tensortrail.analyzer.choosing.request import CheckRequest, FileResult
from tensortrail.analyzer.judging import jobs

from .attacked import BAD, Attacked

chunk = jobs._chunk


def chunk_that_dies(request: CheckRequest, todo: Sequence[jobs._Job]) -> list[FileResult]:
    if any(Path(each.path).name.startswith("deadly") for each in todo):
        os._exit(1)
    return chunk(request, todo)


def test_the_others_keep_their_findings(
    attacked: Attacked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_WORTH_PROCESSES", 0)
    monkeypatch.setattr(jobs, "_chunk", chunk_that_dies)
    for number in range(3):
        attacked.write(f"bad{number}.py", BAD)
    attacked.write("deadly.py", BAD)
    attacked.write("deadly_too.py", BAD)
    done = attacked.check(".", "--jobs", "2")
    assert done.out.count("DEV501") == 3
    assert done.found("deadly.py") == done.found("deadly_too.py") == ["TTR003"]
