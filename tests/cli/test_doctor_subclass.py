"""`tensortrail doctor subclass`: what it prints, and with which code it ends."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.cli.commands import outcome

PACKED = "tests.doctor.subclass.packed"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return outcome(capsys, "doctor", "subclass", *arguments)


def test_a_table_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, f"{PACKED}:forgetful()", "--use", "staging")
    assert code == 1
    assert f"{PACKED}.Forgets: float32 8x8 on cpu, made of inner" in " ".join(out.split())
    assert "DCP staging: " in out
    assert "new_empty(size, device=cpu)" in out
    assert "wrong type" in out
    assert "[NEW304, XFR604]" in " ".join(out.split())
    assert "\x1b" not in out


def test_rows_that_may_fail(capsys: pytest.CaptureFixture[str]) -> None:
    rows = ("share_memory", "parameter.data", "weights_only=True", "dcp.load")
    excused = [part for row in rows for part in ("--except-for", row)]
    code, out, _ = run(capsys, f"{PACKED}:weight()", *excused)
    assert code == 0, out
    assert "(excused)" in out


def test_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    target = tmp_path / "rows.json"
    arguments = ("--make", f"{PACKED}:forgetful", "--use", "FSDP2", "--use", "staging")
    code, out, _ = run(
        capsys, f"{PACKED}:Forgets", *arguments, "--format", "json", "-o", str(target)
    )
    assert (code, out) == (1, "")
    told = json.loads(target.read_text())
    assert told["class"] == f"{PACKED}.Forgets"
    assert told["failing"] == sum(row["verdict"] not in HARMLESS for row in told["rows"])
    (new_empty,) = (row for row in told["rows"] if row["op"] == "new_empty(size, device=cpu)")
    assert new_empty == {
        "use": "DCP staging",
        "op": "new_empty(size, device=cpu)",
        "verdict": "wrong type",
        "told": "gives a plain torch.Tensor",
        "breaks": "async_save stages something else than the weight: its values are not in the "
        "checkpoint",
        "codes": ["NEW304", "XFR604"],
        "excused": False,
    }


HARMLESS = ("handled", "not applicable")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([f"{PACKED}:Packed"], "how to make a Packed is not known here"),
        ([f"{PACKED}:Packed"], "--make module:function"),
        ([f"{PACKED}:weight"], "write tests.doctor.subclass.packed:weight() if it makes"),
        ([f"{PACKED}:Nowhere"], "has no Nowhere"),
        (["no.such.module:Class"], "no.such.module cannot be imported: ModuleNotFoundError"),
        ([PACKED], "is not of the form module:Class"),
        (["torch:randn()"], "fails here: TypeError"),
        (["torch:float32"], "is a dtype, not a class"),
        (["builtins:int"], "is not a subclass of torch.Tensor"),
        ([f"{PACKED}:weight()", "--use", "nothing"], "no use is named nothing"),
        ([f"{PACKED}:weight()", "--rehearse", "tpu"], "tpu"),
    ],
)
def test_what_cannot_be_examined(
    capsys: pytest.CaptureFixture[str], arguments: Sequence[str], told: str
) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert told in err


def test_what_the_class_prints_is_not_in_the_output(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = f"from {PACKED} import weight\n\ndef loud():\n    print('made')\n    return weight()\n"
    (tmp_path / "loud_in_a_test.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    code, out, err = run(capfd, "loud_in_a_test:loud()", "--use", "FSDP2", "--format", "json")
    assert code == 0
    assert json.loads(out)["failing"] == 0
    assert "made" in err


def test_a_module_of_the_working_directory(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine_of_a_test.py").write_text(f"from {PACKED} import weight as make\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    code, _, err = run(capsys, "mine_of_a_test:make()", "--use", "FSDP2")
    assert code == 0, err


def test_a_known_class_on_a_simulated_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch.testing._internal.two_tensor")
    named = "torch.testing._internal.two_tensor:TwoTensor"
    code, out, _ = run(capsys, named, "--rehearse", "cuda", "--use", "staging")
    assert code == 0, out
    assert "float32 64x64 on cuda:0, made of a, b" in " ".join(out.split())
