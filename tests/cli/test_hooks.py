"""The hooks of `.pre-commit-hooks.yaml` run on the files they ask for, as pre-commit does it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tensortrail.rules import all_rules
from tests.cli.test_doctor_checkpoint import DATA, write

HOOKS = {
    hook["id"]: hook
    for hook in yaml.safe_load(
        (Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    )
}


def asked_for(hook: dict[str, Any], name: str) -> bool:
    """pre-commit searches both patterns in the path from the root of the repository."""
    never = hook.get("exclude", "^$")
    return bool(re.search(hook.get("files", ""), name)) and not re.search(never, name)


def run(hook: dict[str, Any], folder: Path, *names: str) -> subprocess.CompletedProcess[str]:
    program, *words = hook["entry"].split()
    assert program == "tensortrail"
    command = [sys.executable, "-m", "tensortrail", *words, *names]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("model.safetensors", True),
        ("weights/model-00001-of-00002.safetensors", True),
        ("a/model.safetensors.index.json", True),
        ("a/model.safetensors.index.fp16.json", True),
        ("dcp/.metadata", True),
        ("dcp/__0_0.distcp", True),
        ("pytorch_model.bin", True),
        ("adapter/adapter_config.json", True),
        ("config.json", False),
        ("tokenizer.bin", False),
        ("a/openvino_model.bin", False),
        ("train.py", False),
        ("data.ckpt.md", False),
    ],
)
def test_the_files_of_the_doctor(name: str, expected: bool) -> None:
    assert asked_for(HOOKS["tensortrail-doctor"], name) is expected


def test_the_doctor_checks_the_folders_of_the_files(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        folder.mkdir()
        write(folder / "model.safetensors")
    index = {"metadata": {"total_size": 32}, "weight_map": {"a": "lost.safetensors"}}
    (broken / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    hook = HOOKS["tensortrail-doctor"]
    done = run(hook, tmp_path, "whole/model.safetensors")
    assert (done.returncode, done.stderr) == (0, "")
    names = ["whole/model.safetensors", "broken/model.safetensors.index.json"]
    done = run(hook, tmp_path, *names, "broken/model.safetensors")
    assert done.returncode == 1
    assert done.stdout.count("error[CKP821]") == 1
    assert "read: 4 tensors in 2 files" in done.stdout
    write(whole / "model.safetensors", DATA[:20])
    assert "whole/model.safetensors: byte" in run(hook, tmp_path, *names).stdout


def test_the_hooks_for_code(tmp_path: Path) -> None:
    example = all_rules()["DEV501"].bad[0]
    (tmp_path / "clean.py").write_text("x = 1\n", encoding="utf-8")
    (tmp_path / "risky.py").write_text(example.source, encoding="utf-8")
    plain, fixing = HOOKS["tensortrail"], HOOKS["tensortrail-fix"]
    assert all(each["require_serial"] for each in HOOKS.values()), "they share a cache"
    assert plain["types_or"] == fixing["types_or"] == ["python", "jupyter"]
    assert run(plain, tmp_path, "clean.py").returncode == 0
    done = run(plain, tmp_path, "clean.py", "risky.py")
    assert done.returncode == 1
    assert "DEV501" in done.stdout
    done = run(fixing, tmp_path, "clean.py", "risky.py")
    assert done.returncode == 1
    assert "fixable with --fix --unsafe-fixes" in done.stdout
    assert (tmp_path / "risky.py").read_text(encoding="utf-8") == example.source
