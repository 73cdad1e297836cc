"""Work grows with the size of a file, whatever its shape; what is too much is said."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from benchmarks.shapes import HEAD, SHAPES, of_size
from tensortrail.analyzer.judge import Judge
from tensortrail.analyzer.limits import Limit, TooMuch
from tensortrail.analyzer.pieces import MOST_WORDS, is_large, worth_parsing
from tensortrail.analyzer.request import CheckRequest
from tensortrail.findings import Finding

FEW, MANY = 60, 480
STEEPEST = 1.5
"""As exponent: quadratic work is 2, and a short run on a busy machine is not exact."""
COUNTS = {
    "findings": 1,
    "findings_apart": 1,
    "methods_with_findings": 1,
    "subclasses": 1,
    "attributes": 1,
}
"""Findings a part of the shape; none in the others."""


def judged(source: str, path: str = "shape.py") -> tuple[float, list[Finding]]:
    judge = Judge(CheckRequest())
    data = source.encode()
    rules = judge.rules_for(data)
    start = time.thread_time()
    found = list(judge.file(path, data, rules).findings)
    return time.thread_time() - start, found


@pytest.fixture(autouse=True)
def _no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The growth itself is measured, not where it is cut off."""
    monkeypatch.setattr("tensortrail.analyzer.judge.MOST_SECONDS", 600.0)


@pytest.mark.parametrize("name", SHAPES)
def test_work_grows_with_the_size(name: str) -> None:
    judged(SHAPES[name](10))
    few = min(judged(SHAPES[name](FEW))[0] for _ in range(2))
    many, found = judged(SHAPES[name](MANY))
    assert many <= 0.3 + max(few, 0.02) * (MANY / FEW) ** STEEPEST
    codes = [each.code for each in found if each.code != "TTR004"]
    if name in COUNTS:
        assert len(codes) >= MANY * COUNTS[name]


@pytest.mark.parametrize("name", ["added", "elifs"])
def test_a_long_chain_costs_no_finding(name: str) -> None:
    source = SHAPES[name](900) + "\ndef g(t: torch.Tensor):\n    return t.device == 'cpu'\n"
    assert ("DEV501", source.count("\n")) in {(e.code, e.site.line) for e in judged(source)[1]}


def test_what_is_nested_too_deeply_is_said_and_the_rest_is_judged() -> None:
    source = SHAPES["dotted"](400) + "\ndef g(t: torch.Tensor):\n    return t.device == 'cpu'\n"
    _, found = judged(source)
    assert [each.code for each in found] == ["TTR004", "DEV501"]
    assert "nested too deeply" in found[0].message
    assert "the values in `f`" in found[0].message


def test_a_file_that_takes_too_long_is_judged_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensortrail.analyzer.judge.MOST_SECONDS", 0.0)
    monkeypatch.setattr("tensortrail.analyzer.limits._EVERY", 10)
    _, found = judged(SHAPES["findings_apart"](50))
    [said] = [each for each in found if each.code == "TTR004"]
    assert "more rules, as it takes more than" in said.message


def test_time_spent_on_one_file_is_no_matter_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tensortrail.analyzer.limits._EVERY", 10)
    limit = Limit()
    limit.begin(0.0)
    with pytest.raises(TooMuch):
        any(limit.tick() for _ in range(100))  # type: ignore[func-returns-value]
    limit.begin(60.0)
    for _ in range(100):
        limit.tick()
    assert not limit.notes


def test_of_a_very_large_file_the_statements_that_matter_are_judged() -> None:
    filler = "".join(f"x{number} = [\n    {number}, 'a b'\n]\n" for number in range(150_000))
    source = HEAD + filler + "def g(t: torch.Tensor):\n    return t.device == 'cpu'\n"
    assert is_large(source.encode())
    _, found = judged(source)
    assert [(each.code, each.site.line) for each in found] == [("DEV501", source.count("\n"))]


def test_what_does_not_fit_is_named() -> None:
    source = of_size(SHAPES["calls_on_a_line"], 5_000_000)
    _, found = judged(source)
    [said] = found
    assert said.code == "TTR004"
    assert f"line {source.count(chr(10))}" in said.message
    assert f"{MOST_WORDS:,} words" in said.message


def test_what_is_left_of_a_file_stands_where_it_stood() -> None:
    data = b'''import torch
@decorated(
    1)
def f():
    """
x = 1
"""
    return wanted \\
        + 1
if a:
    pass
elif b:
    wanted
else:
    pass
z = [
1,
]
'''
    kept, left_out = worth_parsing(data, [b"wanted"])
    assert not left_out
    assert len(kept) == len(data)
    assert kept == data[: data.index(b"z = [")] + b"     \n  \n \n"
