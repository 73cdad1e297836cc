"""`--write-baseline` and `--baseline`: what was found before is accepted, what is new is not."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tensortrail.cli import main
from tests.cli.commands import outcome

RISKY = "def f(t):\n    return t.weight.device == 'meta'\n"
OTHER = "def g(t):\n    return t.bias.device == 'meta'\n"
BASELINE = "tensortrail-baseline.json"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    write("a.py", RISKY)
    write("b.py", OTHER)
    write("pyproject.toml", f'[tool.tensortrail]\nbaseline = "{BASELINE}"\n')
    assert main(["check", "--write-baseline"]) == 0
    return tmp_path


def write(name: str, text: str) -> None:
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(text, encoding="utf-8")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return outcome(capsys, "check", "--output-format", "concise", *arguments)


def entries() -> list[tuple[str, str, int]]:
    told: dict[str, Any] = json.loads(Path(BASELINE).read_text(encoding="utf-8"))
    return [(each["file"], each["code"], each["count"]) for each in told["findings"]]


def test_what_was_there_is_accepted(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert entries() == [("a.py", "DEV501", 1), ("b.py", "DEV501", 1)]
    code, out, err = run(capsys)
    assert (code, err) == (0, "")
    assert out == "No findings: 2 files checked. 2 more in the baseline.\n"


def test_moved_and_reindented_lines_keep_their_entry(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    method = "".join(f"    {line}\n" for line in RISKY.splitlines())
    write("a.py", f"import os\n\n\nclass A:\n{method}")
    before = Path(BASELINE).read_bytes()
    assert run(capsys)[0] == 0
    assert Path(BASELINE).read_bytes() == before


def test_a_copy_of_an_accepted_line_is_new(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("a.py", RISKY + RISKY)
    code, out, _ = run(capsys)
    assert code == 1
    assert "a.py:4:12: DEV501" in out
    assert "a.py:2" not in out
    write("c.py", OTHER)
    assert "c.py:2:12: DEV501" in run(capsys)[1]


def test_it_shrinks_and_says_so(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("a.py", "x = 1\n")
    code, _, err = run(capsys)
    assert code == 0
    assert f"{BASELINE}: 1 stale finding removed" in err
    assert "DEV501 a.py: return t.weight.device == 'meta'" in err
    assert entries() == [("b.py", "DEV501", 1)]
    write("a.py", RISKY)
    assert run(capsys)[0] == 1, "what went and comes back is new"


def test_a_deleted_file_goes_and_a_renamed_one_stays(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.rename("a.py", "moved.py")
    os.remove("b.py")
    code, _, err = run(capsys)
    assert code == 0
    assert "1 stale finding removed" in err
    assert entries() == [("moved.py", "DEV501", 1)]


@pytest.mark.parametrize(
    "arguments",
    [
        ("b.py",),
        ("--select", "OFF"),
        ("--exclude", "a.py"),
        ("--diff",),
    ],
)
def test_what_was_not_looked_at_stays(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    write("a.py", "x = 1\n")
    assert run(capsys, *arguments)[0] == 0
    assert ("a.py", "DEV501", 1) in entries()


def test_a_file_that_is_half_typed_keeps_its_entries(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("a.py", RISKY + "def (\n")
    assert "TTR001" in run(capsys)[1]
    write("a.py", RISKY)
    assert run(capsys)[0] == 0


def test_fixes_leave_what_is_accepted(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("a.py", RISKY + OTHER)
    code, _, _ = run(capsys, "--fix", "--unsafe-fixes")
    assert code == 0
    assert Path("a.py").read_text() == RISKY + OTHER.replace(".device", ".device.type")
    assert Path("b.py").read_text() == OTHER


def test_writing_again_accepts_what_is_there_now(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("a.py", "x = 1\n")
    write("sub/c.py", OTHER)
    assert main(["check", "sub", "--write-baseline"]) == 0
    assert [each[0] for each in entries()] == ["a.py", "b.py", "sub/c.py"]
    assert main(["check", "--write-baseline"]) == 0
    assert [each[0] for each in entries()] == ["b.py", "sub/c.py"]
    assert run(capsys)[0] == 0


def test_it_may_lie_elsewhere_by_option_only(
    project: Path, capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = str(tmp_path_factory.mktemp("elsewhere") / "known.json")
    assert main(["check", "--write-baseline", "--baseline", elsewhere]) == 0
    assert run(capsys, "--baseline", elsewhere)[0] == 0
    write("pyproject.toml", f"[tool.tensortrail]\nbaseline = '{elsewhere}'\n")
    code, _, err = run(capsys)
    assert code == 2
    assert "is outside the project" in err


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "no such baseline; --write-baseline makes one"),
        ("[]", "it was not written by"),
        ('{"version": 2, "findings": []}', "its version is 2"),
        ('{"version": 1, "findings": [{"file": 3}]}', "it was not written by"),
        ("[" * 100_000, "it was not written by"),
    ],
)
def test_what_is_no_baseline_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str], content: str | None, told: str
) -> None:
    os.remove(BASELINE)
    if content is not None:
        write(BASELINE, content)
    code, _, err = run(capsys)
    assert code == 2
    assert f"{BASELINE}: " in err
    assert told in err


@pytest.mark.parametrize(
    "arguments",
    [("--fix",), ("--add-ignores",), ("--changed-only",), ("--with-trail", "run"), ("-",)],
)
def test_options_that_it_does_not_go_with(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    code, _, err = run(capsys, "--write-baseline", *arguments)
    assert code == 2
    assert "--write-baseline" in err
