"""Rule pages, at the terminal and in the docs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.cli import main
from tensortrail.cli.rule_pages import pages
from tensortrail.rules import all_rules

DOCS = Path(__file__).parents[2] / "docs" / "rules"


def test_a_page(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["explain", "off101"]) == 0
    by_code = capsys.readouterr().out
    assert by_code.startswith("# unguarded-deallocate (OFF101)")
    assert "## Why is this bad?" in by_code
    assert main(["explain", "unguarded-deallocate"]) == 0
    assert capsys.readouterr().out == by_code


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines} >= set(all_rules())


def test_a_family(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "off"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert listed
    assert all(line.startswith("OFF") for line in listed)


def test_an_unknown_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "OFF19"]) == 2
    assert "did you mean 'OFF10" in capsys.readouterr().err


def test_the_generated_pages_are_fresh() -> None:
    expected = pages()
    there = {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")}
    assert there == expected, "run `python -m tensortrail.cli.rule_pages`"
