"""Whatever the inputs hold, no format lets it act, and every program can read the result."""

from __future__ import annotations

import json
import os
import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tensortrail.config import FORMATS
from tensortrail.findings import Edit, Finding, Fix, Report, Safety, Setting, Site, Step
from tensortrail.reporters import render

from .samples import finding, report
from .test_sarif import validate

pytestmark = pytest.mark.long

HOSTILE = "x\x1b[31m\n::error::owned\r\u202e[bold]%0A\x07\x9b##[add-mask]e"
UNDECODABLE = os.fsdecode(b"::stop-commands::\xff")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")

odd_text = st.one_of(
    st.sampled_from([HOSTILE, UNDECODABLE, "::debug::x", "  ::debug::x", "##[debug]x", "[0](x)"]),
    st.text(st.characters(), max_size=30),
    st.text(st.characters(categories=("Cc", "Cf", "Cs", "Zl", "Zp")), max_size=5),
)


@st.composite
def odd_findings(draw: st.DrawFn) -> Finding:
    def words() -> str:
        return draw(odd_text)

    def place() -> Site:
        line, column, more = (draw(st.integers(1, 40)) for _ in range(3))
        start = draw(st.integers(-1, 50))
        end = start if start < 0 else start + more
        return Site(words(), line, column, line + more // 9, more, start, end, "", words())

    fix = Fix(words(), draw(st.sampled_from(Safety)), (Edit(place(), words()),), words())
    return finding(
        name=words(),
        message=words(),
        site=place(),
        trail=(Step(place(), words()),),
        fixes=(fix,),
        settings=(Setting(words(), words(), words(), words(), words()),),
        siblings=(place(),),
        evidence={words(): words()},
    )


@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("format", ["text", "concise", "github", "statistics"])
@given(found=odd_findings(), problem=odd_text)
@example(found=finding(message=HOSTILE, name=HOSTILE), problem=HOSTILE)
def test_text_is_inert(format: str, color: bool, found: Finding, problem: str) -> None:
    shown = render(format, report(found, problems=(problem,)), color=color)
    shown.encode("utf-8")
    if color and format == "text":
        shown = COLOUR.sub("", shown)
    unseen = {unicodedata.category(each) for each in shown if each not in "\n\u200c\u200d"}
    assert not unseen & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    commands = [line for line in shown.split("\n") if line.lstrip().startswith("::")]
    assert len(commands) == (2 if format == "github" else 0)
    assert "##[" not in shown


@pytest.mark.parametrize("format", ["json", "sarif"])
@given(found=odd_findings(), problem=odd_text, root=st.sampled_from(["", os.sep, os.getcwd()]))
def test_programs_can_read_it(format: str, found: Finding, problem: str, root: str) -> None:
    shown = render(format, report(found, problems=(problem,), root=root))
    assert shown.isascii()
    assert "##[" not in shown
    assert not any(line.lstrip().startswith("::") for line in shown.split("\n"))
    data = json.loads(shown)
    json.dumps(data, ensure_ascii=False).encode("utf-8")  # no half surrogate pairs
    if format == "sarif":
        validate(data)


@pytest.mark.parametrize("format", [*FORMATS, "statistics"])
def test_an_empty_report(format: str) -> None:
    assert bool(render(format, Report((), {}))) == (
        format != "lintrunner"
    )  # its lines are findings
