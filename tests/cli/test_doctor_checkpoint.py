"""`tensortrail doctor PATH`: what it prints, in each format, and with which code it ends."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tensortrail.cli import main
from tests.cli.commands import outcome

DATA = bytes(range(32))


def write(path: Path, data: bytes = DATA) -> Path:
    """A safetensors file of two tensors, by hand: no library is needed to be judged."""
    header = {
        "a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
        "b": {"dtype": "F32", "shape": [4], "data_offsets": [16, 32]},
    }
    raw = json.dumps(header).encode()
    raw += b" " * (-len(raw) % 8)
    path.write_bytes(len(raw).to_bytes(8, "little") + raw + data)
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return outcome(capsys, "doctor", *arguments)


def test_a_whole_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "model.safetensors")
    for arguments in ((str(tmp_path),), ("checkpoint", str(tmp_path))):
        code, out, err = run(capsys, *arguments)
        assert (code, err) == (0, "")
        assert "No findings: 1 file checked." in out
        assert "read: 2 tensors in 1 file of " in out
        brief = r"^\d+ checks ran, \d+ had nothing to look at \(--verbose says why\)$"
        assert re.search(brief, out, re.MULTILINE)
    _, out, _ = run(capsys, str(tmp_path), "--verbose")
    assert re.search(r"^checks that ran \(\d+\): file-truncated, ", out, re.MULTILINE)
    assert re.search(r"^did not run \(\d+\), no index here: shard-missing, ", out, re.MULTILINE)


def test_a_damaged_one_in_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "model.safetensors", DATA[:20])
    code, out, _ = run(capsys, str(path))
    assert code == 1
    size = path.stat().st_size
    assert "error[CKP801] file-truncated: the file ends within the bytes of 'b'" in out
    assert f"{path}: byte {size}" in out
    assert f"seen: expected {size + 12} bytes, found {size} bytes" in out
    assert "fix: get the file again: `hf download REPO model.safetensors" in out
    assert main(["doctor", str(path), "--exit-zero"]) == 0


def test_a_note_alone_does_not_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header = json.dumps({"a": {"dtype": "F32", "shape": [8], "data_offsets": [0, 32]}}).encode()
    header += b" " * (3 - len(header) % 4)  # so that the data begin at an odd byte
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + DATA)
    code, out, _ = run(capsys, str(path))
    assert code == 0
    assert "note[CKP809]" in out
    assert run(capsys, str(path), "--fail-on", "note")[0] == 1


def test_each_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "model.safetensors", DATA[:20])
    size = path.stat().st_size
    _, out, _ = run(capsys, str(path), "--format", "json")
    told = json.loads(out)
    (finding,) = told["findings"]
    assert (finding["code"], finding["location"]["line"]) == ("CKP801", 0)
    assert finding["evidence"] == {"expected": f"{size + 12} bytes", "found": f"{size} bytes"}
    assert {"code": "CKP801", "name": "file-truncated", "ran": True, "why": ""} in told["checks"]
    (missing,) = (each for each in told["checks"] if each["name"] == "shard-missing")
    assert (missing["ran"], missing["why"]) == (False, "no index here")
    _, out, _ = run(capsys, str(path), "--format", "sarif")
    (result,) = json.loads(out)["runs"][0]["results"]
    region = result["locations"][0]["physicalLocation"]["region"]
    assert region == {"byteOffset": size, "byteLength": 0}
    assert "to fix it: get the file again" in result["message"]["text"]
    _, out, _ = run(capsys, str(path), "--format", "github")
    assert out.startswith(f"::error file={path},title=CKP801 file-truncated::the file ends")
    _, out, _ = run(capsys, str(path), "--format", "concise")
    assert out.startswith(f"{path}: byte {size}: CKP801 [error] the file ends")


def test_checks_can_be_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "model.safetensors", DATA[:20])
    code, out, _ = run(capsys, str(path), "--ignore", "file-truncated")
    assert code == 0
    assert ", 1 not selected" in out
    code, out, _ = run(capsys, str(path), "--select", "CKP80")
    assert code == 1
    assert run(capsys, str(path), "--select", "CKP899")[0] == 2


def test_where_no_check_can_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, str(tmp_path / "nothing"))
    assert (code, out) == (2, "")
    assert "no such file or directory" in err
    (tmp_path / "config.json").write_text("{}")
    code, out, err = run(capsys, str(tmp_path))
    assert (code, out) == (2, "")
    assert "no check could run" in err
    (tmp_path / "unet").mkdir()
    write(tmp_path / "unet" / "model.safetensors")
    code, _, err = run(capsys, str(tmp_path))
    assert code == 2
    assert f"there are weights in the folders below: {tmp_path / 'unet'}" in err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_file_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "model.safetensors")
    os.mkfifo(tmp_path / "other.safetensors")
    code, out, _ = run(capsys, str(tmp_path))
    assert code == 2
    assert "other.safetensors was not checked: it is not a regular file" in out.replace("\n", " ")


def test_the_report_goes_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, target = write(tmp_path / "model.safetensors"), tmp_path / "report.txt"
    code, out, err = run(capsys, str(path), "-o", str(target))
    assert (code, out) == (0, "")
    assert f"written to {target}" in err
    assert "No findings" in target.read_text()


def test_names_from_the_file_are_inert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = json.dumps({"\x1b[31m\n::error::x": {"dtype": "F12"}}).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(raw).to_bytes(8, "little") + raw)
    for style in ("text", "json", "sarif", "github", "concise"):
        code, out, _ = run(capsys, str(path), "--format", style)
        assert code == 1
        assert "\x1b" not in out
        assert "\n::error::x" not in out


def test_neither_torch_nor_safetensors_is_imported(tmp_path: Path) -> None:
    write(tmp_path / "model.safetensors")
    source = (
        "import sys; from tensortrail.cli import main; code = main(sys.argv[1:]); "
        "print(code, sorted({'torch', 'safetensors', 'numpy', 'transformers'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", source, "doctor", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"


def test_names_of_a_wrapper_below_a_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch = pytest.importorskip("torch")
    weights = {"0.weight": torch.ones(2, 2), "0.bias": torch.ones(2)}
    wrapped = {f"module.{name}": value for name, value in weights.items()}
    torch.save({"epoch": 1, "state_dict": wrapped}, tmp_path / "wrapped.pt")
    torch.save({"epoch": 1, "state_dict": weights}, tmp_path / "plain.pt")
    code, out, _ = run(capsys, str(tmp_path / "wrapped.pt"))
    assert code == 1
    assert "CKP864" in out
    assert "all 2 names below 'state_dict' begin with 'module.'" in out
    assert run(capsys, str(tmp_path / "plain.pt"))[0] == 0
