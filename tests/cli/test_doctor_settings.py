"""`tensortrail doctor settings FILE...`: what it prints, in each format, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commands import outcome

TEXT = """\
distributed_type: DEEPSPEED
deepspeed_config:
  zero_stage: 2
  offload_param_device: cpu
num_processes: 2
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "accelerate.yaml"
    path.write_text(TEXT, encoding="utf-8")
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return outcome(capsys, "doctor", "settings", *arguments)


def test_a_finding_in_text(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, str(file))
    assert code == 1
    assert "warning[CFG903] param-offload-below-stage-3: " in out
    assert f"{file}:4:1" in out
    assert "seen: in the code of DeepSpeed 0.19.6, runtime/engine.py" in out
    assert run(capsys, str(file), "--exit-zero")[0] == 0
    assert run(capsys, str(file), "--ignore", "CFG903")[0] == 0


def test_each_format(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(run(capsys, str(file), "--format", "json")[1])
    assert [each["code"] for each in told["findings"]] == ["CFG903"]
    assert told["files"] == [{"path": str(file), "kind": "settings of accelerate"}]
    sarif = json.loads(run(capsys, str(file), "--format", "sarif")[1])
    (result,) = sarif["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 4
    assert run(capsys, str(file), "--format", "github")[1].startswith("::warning ")


def test_nobodys_settings_and_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.yaml"
    other.write_text("model: llama\n", encoding="utf-8")
    for arguments in ([str(other)], [str(tmp_path / "none.yaml")], [str(tmp_path)]):
        code, _, err = run(capsys, *arguments)
        assert code == 2
        assert "no check could run" in err


def test_one_file_of_two_cannot_be_read(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(TEXT.replace("2\n  offload", "3\n  offload"), encoding="utf-8")
    missing = str(file.parent / "none.yaml")
    code, out, _ = run(capsys, str(file), missing)
    assert code == 2
    assert f"{missing} was not checked: no such file" in out


def test_it_imports_no_library(file: Path) -> None:
    code = (
        "import sys; from tensortrail.cli import main; main(sys.argv[1:]);"
        "bad = {'torch', 'transformers', 'accelerate', 'libcst'} & set(sys.modules);"
        "assert not bad, bad"
    )
    words = [sys.executable, "-c", code, "doctor", "settings", str(file)]
    assert subprocess.run(words, capture_output=True).returncode == 0
