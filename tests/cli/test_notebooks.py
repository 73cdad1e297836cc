"""`tensortrail check` over notebooks, as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.analyzer.test_notebooks import notebook
from tests.cli.commands import outcome

TEXT = {"cell_type": "markdown", "source": ["# A title"]}
IMPORTS = "%load_ext autoreload\nimport torch"
RISKY = "!nvidia-smi\ndef f(t):\n    return t.weight.device == 'meta'"
MENDED = RISKY.replace(".device", ".device.type")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    (tmp_path / "nb.ipynb").write_bytes(notebook(TEXT, IMPORTS, RISKY))
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return outcome(capsys, "check", *arguments)


def in_format(capsys: pytest.CaptureFixture[str], name: str) -> Any:
    return json.loads(run(capsys, "--output-format", name)[1])


def test_places_are_told_by_cell(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys)
    assert (code, err) == (1, "")
    assert "--> nb.ipynb:cell 3:3:12" in out
    assert "3 |     return t.weight.device == 'meta'" in out
    assert "@@ -2,2 +2,2 @@" in out
    assert run(capsys)[1] == out, "from the cache"
    (found,) = in_format(capsys, "json")
    assert {"cell": 3, "line": 3, "column": 12}.items() <= found["location"].items()


def test_a_preview_has_the_lines_of_the_cell(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As they were written, and none of the cells around it."""
    risky = "!nvidia-smi\nx = torch.ones(2, device='cuda').numpy()"
    (project / "nb.ipynb").write_bytes(notebook(TEXT, IMPORTS, risky, "def f(:"))
    out = run(capsys, "--notes", "full")[1]
    assert "  |  !nvidia-smi\n  | -x = torch" in out
    assert "#~" not in out


def test_places_stand_beside_the_lines_of_cells(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = "x = torch.ones(2, device='cuda')\n!ls"
    (project / "nb.ipynb").write_bytes(notebook(TEXT, IMPORTS, made))
    code, out, _ = run(capsys, "--show-places", "nb.ipynb")
    lines = [each.strip() for each in out.splitlines()]
    assert code == 0
    assert lines[:4] == ["cell 2", "1 %load_ext autoreload", "2 import torch", "cell 3"]
    assert lines[4].startswith("1 x = torch.ones(2, device='cuda')")
    assert lines[4].endswith("# x: literal(cuda)")
    assert lines[5] == "2 !ls"


@pytest.mark.parametrize(
    ("text", "said"), [("{", "it ends too early"), ("", "{ expected at character 0")]
)
def test_what_is_no_notebook(
    text: str, said: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "nb.ipynb").write_text(text)
    assert f"not a notebook of format 4: {said}" in run(capsys)[1]
    assert said in run(capsys, "--show-places", "nb.ipynb")[2]


def test_messages_name_lines_of_cells(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = "from torch import nn\nmodel = nn.Embedding(9, 4).to('cuda')\n"
    (project / "nb.ipynb").write_bytes(
        notebook(TEXT, IMPORTS, model, "ids = torch.zeros(2).long()\nmodel(ids)\n")
    )
    _, out, _ = run(capsys, "--notes", "full")
    assert "line 2 of cell 4 uses it together with a tensor on cuda" in out
    assert "@@ -1,2 +1,2 @@" in out
    assert "#~~" not in out, "the marks between cells are ours"


def test_formats_of_whole_files_name_its_line(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (project / "nb.ipynb").read_text(encoding="utf-8").splitlines()
    (line,) = (n for n, text in enumerate(lines, 1) if "t.weight" in text)
    command = run(capsys, "--output-format", "github")[1].splitlines()[0]
    assert f"file=nb.ipynb,line={line},endLine={line},title=" in command
    assert "::cell 3, line 3:%0A" in command
    (result,) = in_format(capsys, "sarif")["runs"][0]["results"]
    physical = result["locations"][0]["physicalLocation"]
    assert physical["region"] == {"startLine": line}
    assert "fixes" not in result


def test_a_fix_changes_one_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (project / "nb.ipynb").read_bytes()
    code, out, err = run(capsys, "--diff", "--unsafe-fixes")
    assert (code, (project / "nb.ipynb").read_bytes()) == (1, before)
    assert "1 finding would be fixed" in err
    assert run(capsys, "--fix", "--unsafe-fixes")[0] == 0
    after = (project / "nb.ipynb").read_bytes()
    assert after == notebook(TEXT, IMPORTS, MENDED)
    (project / "nb.ipynb").write_bytes(before)
    subprocess.run(["git", "apply", "-"], input=out.encode(), check=True, cwd=project)
    assert (project / "nb.ipynb").read_bytes() == after


def test_comments_silence_and_are_added(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--add-ignores")[0] == 0
    ignored = f"{RISKY}  # tensortrail: ignore[DEV501]"
    assert (project / "nb.ipynb").read_bytes() == notebook(TEXT, IMPORTS, ignored)
    assert run(capsys)[0] == 0
    mended = ignored.replace(".device", ".device.type")
    (project / "nb.ipynb").write_bytes(notebook(TEXT, IMPORTS, mended))
    assert "nb.ipynb:cell 3:3:44: TTR002" in run(capsys, "--output-format", "concise")[1]


def test_a_broken_cell_costs_the_others_nothing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "nb.ipynb").write_bytes(notebook(IMPORTS, "x = 1\nif x then", RISKY))
    out = run(capsys, "--output-format", "concise")[1]
    assert "nb.ipynb:cell 2:2:1: TTR001 [note]" in out
    assert "nb.ipynb:cell 3:3:12: DEV501" in out
    run(capsys, "--fix", "--unsafe-fixes")
    assert (project / "nb.ipynb").read_bytes() == notebook(IMPORTS, "x = 1\nif x then", MENDED)


def test_a_broken_cell_alone_is_a_note(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "nb.ipynb").write_bytes(notebook(IMPORTS, "key = <your key>"))
    assert run(capsys)[0] == 0
    assert run(capsys, "--fail-on", "note")[0] == 1


def test_a_title_may_stand_before_the_magic(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "nb.ipynb").write_bytes(notebook(IMPORTS, "#@title Music\n\n%%html\n<audio>"))
    assert "TTR001" not in run(capsys, "--output-format", "concise")[1]


def test_what_one_cell_says_holds_in_the_next(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = ("import torch", "x = torch.ones(2, device='cuda')", "%%time\ny = x.numpy()")
    (project / "nb.ipynb").write_bytes(notebook(*cells))
    assert "nb.ipynb:cell 3:2:5: DEV503" in run(capsys, "--output-format", "concise")[1]
    text = "".join(f"{each}\n" for each in cells[:2]) + "y = x.numpy()\n"
    (project / "same.py").write_text(text)
    assert "same.py:3:5: DEV503" in run(capsys, "--output-format", "concise")[1]


def test_what_is_no_notebook_is_one_finding(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "nb.ipynb").write_bytes(b"{}")
    code, out, _ = run(capsys, "--output-format", "concise")
    assert code == 1
    assert "nb.ipynb:1:1: TTR001 [error] not a notebook of format 4" in out


def test_the_baseline_holds_cells(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--write-baseline")[0] == 0
    (project / "nb.ipynb").write_bytes(notebook(IMPORTS, "x = 1", TEXT, "x = 2\n" + RISKY))
    assert run(capsys, "--baseline", "tensortrail-baseline.json")[0] == 0


def test_standard_input(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (project / "nb.ipynb").read_bytes()

    def piped(*arguments: str, data: bytes = data) -> bytes:
        command = ["tensortrail", "check", "-", "--stdin-filename", "nb.ipynb", *arguments]
        return subprocess.run(
            [sys.executable, "-m", *command], input=data, capture_output=True
        ).stdout

    assert b"nb.ipynb:cell 3:3:12: DEV501" in piped("--output-format", "concise")
    assert piped("--fix", "--unsafe-fixes") == notebook(TEXT, IMPORTS, MENDED)
    assert piped("--fix", data=b"{}") == b"{}"


def test_a_notebook_that_git_lfs_has_not_fetched_is_passed_over_and_named(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n"
    (project / "far.ipynb").write_bytes(pointer)
    _, out, err = run(capsys, ".")
    assert "TTR001" not in out
    assert "in 1 file." in out
    assert "1 notebook not checked, `git lfs pull` fetches the content: far.ipynb" in err
    assert run(capsys, "far.ipynb")[:2] == (0, "No findings: 0 files checked.\n")
