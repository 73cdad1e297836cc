"""Work grows with the size of a file, whatever its shape; what is too much is said."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import pytest

from benchmarks.shapes import HEAD, SHAPES
from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.judging.judge import Judge
from tensortrail.analyzer.reading.large_files import is_large, worth_parsing
from tensortrail.analyzer.reading.limits import Limit, TooMuch
from tensortrail.findings import Finding

pytestmark = pytest.mark.long

FEW, MANY = 40, 160
STEEPEST = 1.25
"""As exponent: quadratic work is 2."""
COUNTS = {
    "findings": 1,
    "findings_apart": 1,
    "methods_with_findings": 1,
    "subclasses": 1,
    "attributes": 1,
}
"""Findings a part of the shape; none in the others."""


def judged(source: str, path: str = "shape.py") -> list[Finding]:
    judge = Judge(CheckRequest())
    data = source.encode()
    return list(judge.file(path, data, judge.chosen.rules_for(data)).findings)


def work_of(source: str) -> tuple[int, list[Finding]]:
    """The calls that it takes to judge the source: as many on a busy machine as on an idle one."""
    calls = 0

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        found = judged(source)
    finally:
        sys.setprofile(before)
    return calls, found


@pytest.fixture(autouse=True)
def _no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The growth itself is measured, not where it is cut off."""
    monkeypatch.setattr("tensortrail.analyzer.judging.judge.MOST_SECONDS", 600.0)


@pytest.mark.parametrize("name", SHAPES)
def test_work_grows_with_the_size(name: str) -> None:
    judged(SHAPES[name](10))
    few, _ = work_of(SHAPES[name](FEW))
    many, found = work_of(SHAPES[name](MANY))
    assert many <= few * (MANY / FEW) ** STEEPEST
    codes = [each.code for each in found if each.code != "TTR004"]
    if name in COUNTS:
        assert len(codes) >= MANY * COUNTS[name]


@pytest.mark.parametrize("name", ["branches", "cases"])
def test_work_in_one_long_function_grows_with_the_size(name: str) -> None:
    judged(SHAPES[name](10))
    few, _ = work_of(SHAPES[name](3 * FEW))
    many, _ = work_of(SHAPES[name](3 * MANY))
    assert many <= few * (MANY / FEW) ** 1.15


@pytest.mark.parametrize("name", ["added", "elifs"])
def test_a_long_chain_costs_no_finding(name: str) -> None:
    source = SHAPES[name](900) + "\ndef g(t: torch.Tensor):\n    return t.device == 'cpu'\n"
    assert ("DEV501", source.count("\n")) in {(e.code, e.site.line) for e in judged(source)}


def test_what_is_nested_too_deeply_is_said_and_the_rest_is_judged() -> None:
    source = SHAPES["dotted"](500) + "\ndef g(t: torch.Tensor):\n    return t.device == 'cpu'\n"
    found = judged(source)
    assert [each.code for each in found] == ["TTR004", "DEV501"]
    assert "nested too deeply" in found[0].message
    assert "the values in `f`" in found[0].message


def test_a_file_that_takes_too_long_is_judged_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensortrail.analyzer.judging.judge.MOST_SECONDS", 0.0)
    monkeypatch.setattr("tensortrail.analyzer.reading.limits._EVERY", 10)
    found = judged(SHAPES["findings_apart"](50))
    [said] = [each for each in found if each.code == "TTR004"]
    assert "more rules, as it takes more than" in said.message


def test_time_spent_on_one_file_is_no_matter_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tensortrail.analyzer.reading.limits._EVERY", 10)
    limit = Limit()
    limit.begin(0.0)
    with pytest.raises(TooMuch):
        any(limit.tick() for _ in range(100))  # type: ignore[func-returns-value]
    limit.begin(60.0)
    for _ in range(100):
        limit.tick()
    assert not limit.notes


@pytest.fixture
def _soon_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensortrail.analyzer.reading.large_files._LARGE", 10_000)
    monkeypatch.setattr("tensortrail.analyzer.reading.large_files.MOST_WORDS", 3_000)


@pytest.mark.usefixtures("_soon_large")
def test_of_a_very_large_file_the_statements_that_matter_are_judged() -> None:
    filler = "".join(f"x{number} = [\n    {number}, 'a b'\n]\n" for number in range(1_500))
    source = HEAD + filler + "if torch.cuda.is_available:\n    print(1)\n"
    assert is_large(source.encode())
    found = judged(source)
    assert [(each.code, each.site.line) for each in found] == [("DEV546", source.count("\n") - 1)]


@pytest.mark.usefixtures("_soon_large")
def test_what_does_not_fit_is_named() -> None:
    source = SHAPES["calls_on_a_line"](3_000)
    found = judged(source)
    [said] = found
    assert said.code == "TTR004"
    assert f"line {source.count(chr(10))}" in said.message
    assert "3,000 words" in said.message


@pytest.mark.usefixtures("_soon_large")
def test_of_what_was_not_judged_no_comment_is_called_unused() -> None:
    source = SHAPES["silenced"](600)
    assert [each.code for each in judged(source)] == ["TTR004"]


def test_brackets_and_signs_one_inside_the_other_count_as_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tensortrail.analyzer.reading.large_files._LARGE", 0)
    monkeypatch.setattr("tensortrail.analyzer.reading.large_files.MOST_WORDS", 100)
    assert is_large(b"x = " + b"[" * 120 + b"]" * 120)
    assert is_large(b"x = " + b"- " * 120 + b"1")
    assert not is_large(b"x = [" + b"f(1) + 1, " * 20 + b"]")


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
