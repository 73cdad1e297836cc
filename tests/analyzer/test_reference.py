"""The quick way and the slow one find the same in code that real people wrote.

The slow way: every rule looks at every file, and nothing is remembered from one file to the next.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.choosing.rule_index import listed
from tensortrail.analyzer.judging.judge import Judge
from tensortrail.analyzer.reading.discover import discover
from tensortrail.findings import Finding

ALL = CheckRequest(codes=frozenset(listed()), report_unused=False)
LARGEST = 12_000
FEW, MANY = 5, 120


def sample(package: str, count: int) -> list[Path]:
    """Files of the installed package, from all over it, with those that rules look at first."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    folder = spec.submodule_search_locations[0]
    chosen = Judge(ALL).chosen
    found = [Path(each) for each in discover([folder], respect_gitignore=False).files]
    small = [each for each in found if each.stat().st_size <= LARGEST]
    wanted = [each for each in small if len(chosen.rules_for(each.read_bytes())) > 1]
    return wanted[:: max(1, len(wanted) // count)][:count]


def quickly(paths: list[Path]) -> list[tuple[Finding, ...]]:
    judge = Judge(ALL)
    texts = [(str(each), each.read_bytes()) for each in paths]
    return [judge.file(path, data, judge.chosen.rules_for(data)).findings for path, data in texts]


def slowly(path: Path) -> tuple[Finding, ...]:
    judge = Judge(ALL._replace(use_triggers=False))
    data = path.read_bytes()
    return judge.file(str(path), data, judge.chosen.rules_for(data)).findings


@pytest.mark.parametrize(
    ("package", "count"),
    [
        ("accelerate", FEW),
        pytest.param("accelerate", MANY, marks=pytest.mark.complete),
        pytest.param("peft", MANY, marks=pytest.mark.complete),
        pytest.param("torch", MANY, marks=pytest.mark.complete),
    ],
)
def test_both_ways_find_the_same(package: str, count: int) -> None:
    paths = sample(package, count)
    assert len(paths) >= min(count, FEW)
    found = quickly(paths)
    for path, quick in zip(paths, found, strict=True):
        assert quick == slowly(path), path
