"""Comments that silence findings, and those that silence none."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.fixing.edits import apply
from tensortrail.analyzer.judging.engine import check
from tensortrail.analyzer.judging.suppress import added_ignores, suppressions_in
from tensortrail.analyzer.reading.source import Source
from tensortrail.findings import Finding

LINE = 'def f(t):\n    return t.weight.device == "meta"{comment}\n'


def found(source: str) -> list[str]:
    result = check(CheckRequest(stdin=("a.py", source.encode()), cache_dir=None))
    return [each.code for each in result.findings]


def findings(source: str) -> tuple[Finding, ...]:
    return check(CheckRequest(stdin=("a.py", source.encode()), cache_dir=None)).findings


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("", ["DEV501"]),
        ("  # noqa", []),
        ("  # noqa: DEV501", []),
        ("  # noqa: E501, DEV501", []),
        ("  # noqa: E501", ["DEV501"]),
        ("  # tensortrail: ignore", []),
        ("  # tensortrail: ignore[DEV501] it is a string there", []),
        ("  # type: ignore  # tensortrail: ignore[DEV501]", []),
        ("  # tensortrail: ignore[OFF106]", ["DEV501", "TTR002"]),
        ("  # tensortrail: ignore[DEV5O1]", ["DEV501", "TTR002"]),
        ("  # tensortrail: ignore[device-eq-str]", ["DEV501", "TTR002"]),
        ("  # tensortrail: ignore[DEV]", ["DEV501", "TTR002"]),
        ("  # noqa: OFF106", ["DEV501", "TTR002"]),
    ],
)
def test_comments(comment: str, expected: list[str]) -> None:
    assert found(LINE.format(comment=comment)) == expected


def test_a_whole_file() -> None:
    assert found("# tensortrail: ignore-file[DEV501]\n" + LINE.format(comment="")) == []


def test_text_in_a_string_is_no_comment() -> None:
    assert found('x = "# tensortrail: ignore[OFF106]"\n') == []
    assert found(LINE.format(comment="") + 's = "# noqa"\n') == ["DEV501"]


def test_the_last_line_of_an_expression_counts_too() -> None:
    body = 'return (\n        t.weight.device\n        == "meta"  # noqa: DEV501\n    )\n'
    assert found(f"def f(t):\n    {body}") == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = 1  # tensortrail: ignore[OFF106] old\n", "x = 1\n"),
        ("x = 1  # noqa: E501, OFF106\n", "x = 1  # noqa: E501\n"),
        ("# tensortrail: ignore-file[OFF106]\nx = 1\n", "\nx = 1\n"),
        ("x = 1  # tensortrail: ignore[OFF106]  # type: ignore\n", "x = 1  # type: ignore\n"),
    ],
)
def test_unused_ones_are_removed(source: str, expected: str) -> None:
    (finding,) = findings(source)
    assert finding.code == "TTR002"
    assert apply(source.encode(), finding.fixes[0].edits).decode() == expected


@pytest.mark.parametrize(
    "source",
    [
        LINE.format(comment=""),
        LINE.format(comment="  # a remark"),
        'def f(t):\n    return t.weight.device \\\n        == "meta"\n',
        'def f(t):\n    use("""\n    text""", t.weight.device == "meta")\n',
        'def f(t):\r\n    return t.weight.device == "meta"\r\n',
        'def f(t):\n    return "\U0001f525", t.weight.device == "meta"\n',
    ],
)
def test_added_ignores_silence_and_parse(source: str) -> None:
    data = source.encode()
    edits = added_ignores(Source("a.py", data), findings(source))
    assert edits
    mended = apply(data, edits).decode()
    ast.parse(mended)
    assert found(mended) == []


@given(st.binary(max_size=200))
def test_any_bytes_are_survived(data: bytes) -> None:
    assert isinstance(suppressions_in(b"# noqa\n" + data), list)


def test_a_comment_that_names_no_rule_is_told_what_was_meant() -> None:
    (told,) = findings("x = 1  # tensortrail: ignore[dev5O1]\n")
    assert told.message == "this comment names no rule: DEV5O1 (did you mean DEV501?)"
    assert not told.fixes
