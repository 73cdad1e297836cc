"""Messages beside the report, and names no terminal should see raw."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest

from tensortrail.analyzer.choosing.request import CheckResult
from tensortrail.cli import main
from tensortrail.cli.console import fail, say, wants_color

BAD = 'def f(t):\n    return t.weight.device == "meta"\n'


def test_messages_are_inert(capsys: pytest.CaptureFixture[str]) -> None:
    fail("no such file: \x1b[2J", "did you mean\x07?")
    say("::error::x.py: not fixed")
    assert capsys.readouterr().err.splitlines() == [
        "tensortrail: error: no such file: \\x1b[2J",
        "  did you mean\\x07?",
        "./::error::x.py: not fixed",
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="other file systems refuse these names")
@pytest.mark.parametrize("format", ["text", "concise", "github", "json", "sarif"])
def test_odd_names_from_end_to_end(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    format: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [b"a\x1b[31m.py", b"b\n::error::x.py", b"::debug::c.py", b"d\xff.py", "ü🔥.py".encode()]
    for name in names:
        Path(os.fsdecode(name)).write_text(BAD)
    code = main(["check", "--no-cache", "--output-format", format])
    shown = capsys.readouterr().out
    assert code == 1
    assert "\x1b" not in shown
    commands = [line for line in shown.splitlines() if line.lstrip().startswith("::")]
    assert len(commands) == (len(names) if format == "github" else 0)
    if format == "json":
        assert len(json.loads(shown)) == len(names)
    elif format == "sarif":
        places = [
            each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
            for each in json.loads(shown)["runs"][0]["results"]
        ]
        assert "d%FF.py" in places
        assert "b%0A%3A%3Aerror%3A%3Ax.py" in places
    else:
        assert f"Found {len(names)} findings" in shown


def test_json_tells_problems_on_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = CheckResult((), (), ("a.py",), ("sub\x1b: cannot be listed",))
    monkeypatch.setattr("tensortrail.cli.check.check", lambda request, *progress: result)
    assert main(["check", "--output-format", "json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == []
    assert captured.err == "sub\\x1b: cannot be listed\n"


def test_standard_output_and_error_may_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by `>&-` and `2>&-`; and a program may close what it is given."""
    closed = io.StringIO()
    closed.close()
    for stream in (None, closed):
        monkeypatch.setattr(sys, "stderr", stream)
        say("lost")
        assert not wants_color("auto", stream)
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["check", "missing.py"]) == 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device is always full")
def test_a_full_disk_below_standard_output_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["explain", "OFF101"]) == 2
    assert "the output cannot be written: No space left on device" in capsys.readouterr().err
