"""`tensortrail check` as a user meets it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tensortrail.cli import main
from tests.cli.commands import BAD, NOTED, outcome

pytestmark = pytest.mark.long

FIXED = BAD.replace(".device", ".device.type")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return outcome(capsys, "check", *arguments)


def test_findings_give_one(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys)
    assert code == 1
    assert "warning[DEV501] device-eq-str" in out
    assert "bad.py:2:12" in out
    assert err == ""


def test_a_clean_run_is_one_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "clean.py") == (0, "No findings: 1 file checked.\n", "")


def test_the_cost_of_each_rule(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys)  # into the cache, which a profile does not read
    code, out, err = run(capsys, "--profile-rules", "--select", "DEV501,DEV504", "--jobs", "2")
    head, *rows = (line.split() for line in err.splitlines())
    assert head == ["rule", "seconds", "files", "findings"]
    assert [(row[0], *row[2:]) for row in rows] == [("DEV501", "1", "1")]
    assert code == 1
    assert "warning[DEV501]" in out


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("--ignore ALL", 2),
        ("--select DEV501 --ignore DEV", 2),
        ("--select CKP", 2),
        ("--ignore ALL --syntax", 0),
        ("--select TTR002", 0),
        ("--select CKP,OFF", 0),
    ],
)
def test_a_check_without_rules_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str], options: str, code: int
) -> None:
    told = run(capsys, *options.split())
    assert told[0] == code
    assert ("no rule is left that reads code" in told[2]) == (code == 2)
    assert ("No findings" in told[1]) == (code == 0)


def test_exit_zero(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--exit-zero")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["missing.py"], "no such file or directory: missing.py"),
        (["--select", "OFF999"], "no rule 'OFF999'"),
        (["--select", "unguarded-dealocate"], "did you mean 'unguarded-deallocate'?"),
        (["--select", "DEV5O1"], "did you mean 'DEV501'?"),
        (["--select", "DEVV"], "did you mean 'DEV'?"),
        (["--select", "OFF", "DEV"], "rules are separated by commas: --select OFF,DEV"),
        (["--config", "typo.toml"], "typo.toml: no rule 'OFFF' (did you mean 'OFF'?)"),
        (["--unsafe-fixes"], "--unsafe-fixes needs --fix"),
        (["--config", "none.toml"], "none.toml: cannot be read"),
        (["-", "bad.py"], "cannot be combined"),
        (["--add-ignores", "--diff"], "--add-ignores cannot be combined with --fix or --diff"),
        (["--add-ignores", "-"], "--add-ignores writes files"),
        (["--stdin-filename", "new.py"], "--stdin-filename needs -"),
        (["--jobs", "-1"], "--jobs must be 0 or more"),
    ],
)
def test_usage_errors_give_two(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    (project / "typo.toml").write_text('[tool.tensortrail]\nselect = ["OFFF"]\n')
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert told in err


def test_no_files_is_an_error_unless_allowed(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "empty").mkdir()
    code, _, err = run(capsys, "empty")
    assert code == 2
    assert "no Python files found in empty" in err
    assert run(capsys, "empty", "--allow-empty")[0] == 0


def test_select_and_ignore(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--select", "OFF")[0] == 0
    assert run(capsys, "--select", "device-eq-str")[0] == 1
    assert run(capsys, "--ignore", "DEV501")[0] == 0
    assert run(capsys, "--select", "OFF", "--extend-select", "DEV5")[0] == 1


def test_fix_needs_consent_for_unsafe_ones(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "--fix")[0] == 1
    assert (project / "bad.py").read_text() == BAD
    code, out, _ = run(capsys, "--fix", "--unsafe-fixes")
    assert code == 0
    assert "1 finding fixed" in out
    assert (project / "bad.py").read_text() == FIXED


def test_diff_changes_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--diff", "--unsafe-fixes")
    assert code == 1
    assert "+    return t.weight.device.type" in out
    assert (project / "bad.py").read_text() == BAD


def test_add_ignores_makes_it_clean(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "--add-ignores")
    assert code == 0
    assert "Added 1 suppression" in err
    assert run(capsys)[0] == 0
    assert "# tensortrail: ignore[DEV501]" in (project / "bad.py").read_text()


def test_json_and_output_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--output-format", "json", "--output-file", "report.json")
    assert (code, out) == (1, "")
    (found,) = json.loads((project / "report.json").read_text())
    assert found["code"] == "DEV501"
    assert found["location"] == {
        "file": str(Path(".") / "bad.py"), "line": 2, "column": 12, "end_line": 2, "end_column": 37,
    }  # fmt: skip
    assert found["fixes"][0]["safety"] == "unsafe"


def test_standard_input(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def give(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    give(BAD)
    code, out, _ = run(capsys, "-", "--stdin-filename", "editor.py")
    assert code == 1
    assert "editor.py:2:12" in out
    give(BAD)
    code, out, _ = run(capsys, "-", "--fix", "--unsafe-fixes")
    assert (code, out) == (0, FIXED)


def test_statistics(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "--statistics")
    assert out.splitlines()[0].split()[:3] == ["1", "DEV501", "device-eq-str"]


def test_configuration(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = project / "pyproject.toml"
    config.write_text('[tool.tensortrail]\nignore = ["DEV"]\n')
    assert run(capsys)[0] == 0
    assert run(capsys, "--isolated")[0] == 1
    config.write_text('[tool.tensortrail.per-file-ignores]\n"bad.py" = ["DEV501"]\n')
    assert run(capsys)[0] == 0
    config.write_text('[tool.tensortrail]\nexclude = ["bad.py"]\n')
    assert run(capsys)[0] == 0


def test_show_settings(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--show-settings", "--select", "STO")
    assert code == 0
    assert "select = ('STO',)" in out
    assert "STO201" in out


def test_an_internal_error_is_told_kindly(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("tensortrail.cli.check.check", broken)
    code, _, err = run(capsys)
    assert code == 2
    assert "internal error: ZeroDivisionError: oops" in err
    assert "TENSORTRAIL_DEBUG=1" in err


def test_a_reader_that_goes_away_is_no_error(project: Path) -> None:
    for number in range(300):
        (project / f"bad{number}.py").write_text(BAD)
    process = subprocess.Popen(
        [sys.executable, "-m", "tensortrail", "check"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=project,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert b"Traceback" not in process.stderr.read()
    assert process.wait() == 2


def test_module_and_version() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tensortrail", "--version"], capture_output=True, text=True
    )
    assert done.stdout.startswith("tensortrail 0.")


def test_fixing_standard_input_keeps_its_bytes(project: Path) -> None:
    data = b'# coding: latin-1\r\nname = "\xe9"'
    command = [sys.executable, "-m", "tensortrail", "check", "--fix", "-"]
    done = subprocess.run(command, input=data, capture_output=True)
    assert (done.returncode, done.stdout) == (0, data)


def test_a_diff_counts_what_is_left_in_each_file(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "latin.py").write_bytes(b"# coding: latin-1\n# \xe9\n" + BAD.encode())
    assert "1 finding would be fixed, 1 left" in run(capsys, "--diff", "--unsafe-fixes")[2]


def test_syntax_parses_files_without_a_trigger_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text("def f(:\n")
    assert run(capsys, "broken.py")[0] == 0
    code, out, _ = run(capsys, "--syntax", "broken.py")
    assert code == 1
    assert "TTR001" in out
    assert f"not valid Python 3.{sys.version_info[1]}: " in out
    assert run(capsys, "broken.py")[0] == 0


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python reads it")
def test_files_for_later_pythons_are_told_of_once(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "abcd":
        (project / f"{name}.py").write_text(f"type X = int\n{BAD}")
    told = "a.py:1:6: TTR001 [note] 4 files (a.py, b.py, c.py, ...) are written for a later Python"
    code, out, _ = run(capsys, "--format", "concise")
    assert code == 1
    assert out.splitlines()[0].startswith(told)
    assert out.count("TTR001") == 1
    assert len(json.loads(run(capsys, "--format", "json")[1])) == 5, "programs get one a file"
    assert run(capsys, "a.py", "b.py")[0] == 0
    assert run(capsys, "a.py", "b.py", "--fail-on", "note")[0] == 1
    assert " written for a later Python" in run(capsys, "a.py")[1]
    assert "0 findings would be fixed, 1 left" in run(capsys, "a.py", "b.py", "--diff")[2]


def test_paths_before_and_behind_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text(NOTED)
    assert main(["check", "one.py", "--isolated", "--fail-on", "note", "two.py"]) == 1
    out = capsys.readouterr().out
    assert "one.py:4" in out
    assert "two.py:4" in out


def test_what_a_diff_leaves_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.py").write_text(
        "import torch\nmodel = torch.compile(build())\ntorch.save(model.state_dict(), 'm.pt')\n"
    )
    main(["check", "--diff", "--isolated", "one.py"])
    assert "  SHD409 at one.py:3: its patch needs --unsafe-fixes" in capsys.readouterr().err
    main(["check", "--diff", "--isolated", "--unsafe-fixes", "one.py"])
    assert "SHD409" not in capsys.readouterr().err


def test_the_process_ends_with_all_that_was_said_and_its_handlers_run(tmp_path: Path) -> None:
    source = tmp_path / "risky.py"
    source.write_text(BAD * 200)
    ends = "import atexit; atexit.register(print, 'handled'); from tensortrail.cli import program; "
    run = [sys.executable, "-c", ends + "program()", "check", "risky.py", "--output-format", "json"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    told, _, after = done.stdout.rpartition("handled")
    assert (done.returncode, after, done.stderr) == (1, "\n", "")
    assert len(json.loads(told)) == 200
