"""`tensortrail doctor placement MODEL`: what it prints and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from tensortrail.cli.doctor.placement import grouped
from tests.cli.commands import outcome

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "float16",
    "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4,
    "num_hidden_layers": 6, "vocab_size": 500,
}  # fmt: skip


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG), encoding="utf-8")
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return outcome(capsys, "doctor", "placement", *arguments)


def test_it_says_where_and_why(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, config, "--gpu", "360KB", "--cpu", "1GiB")
    assert code == 0
    assert "LlamaForCausalLM: " in out
    assert "  gpu 0: " in out
    assert "  cpu: " in out
    assert "why: model.layers." in out
    assert " bytes are missing" in out
    assert "more to hold the whole model" in out
    assert "together: LlamaDecoderLayer is never split (6, " in out
    assert "a step moves " in out
    code, out, _ = run(capsys, config, "--gpu", "1GiB", "x2")
    assert code == 0
    assert "nothing is offloaded" in out


def test_one_gpu_for_all_of_it(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ": the whole model\n" in run(capsys, config, "--gpu", "1GiB")[1]


def test_what_has_no_place(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, config, "--gpu", "360KB")
    assert code == 1
    assert "no place for " in out
    assert run(capsys, config, "--gpu", "360KB", "--disk")[0] == 0


def test_a_gpu_smaller_than_what_is_kept_free(
    config: str, capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    """The library's own warning about buffers is a line of the answer."""
    out = run(capsys, config, "--gpu", "3KiB", "--disk")[1]
    assert "gpu 0 has 3.1 KB left, less than the " in out
    assert " of the offloaded modules' buffers stay on a GPU" in out
    assert not recwarn


def test_json(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(run(capsys, config, "--gpu", "360KB", "--cpu", "1GiB", "--format", "json")[1])
    assert told["device_map"]["model.embed_tokens"] == 0
    assert told["used"].keys() == {"0", "cpu"}
    assert told["reasons"][0]["missing"] > 0
    assert told["moved_in_a_step"]["cpu"] > 0


def test_what_cannot_be_done(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, why in (
        ([config], "at least one GPU"),
        ([config, "--gpu", "much"], "'much' is not a size"),
        ([str(tmp_path / "none"), "--gpu", "1GB"], "there is no file or folder"),
        ([config, "--gpu", "1GB", "--dtype", "float17"], "not a dtype of torch"),
        ([config, "--gpu", "1GB", "--run", str(tmp_path / "none")], "none"),
    ):
        code, _, err = run(capsys, *arguments)
        assert code == 2
        assert why in err


def test_names_in_a_row_are_one() -> None:
    names = ["e", "l.0", "l.1", "l.2", "l.5", "norm", "x.3", "x.4"]
    assert list(grouped(names)) == ["e", "l.0-2", "l.5", "norm", "x.3-4"]


PROGRAM = """
import torch
from accelerate import cpu_offload, dispatch_model
from transformers import AutoConfig, LlamaForCausalLM

model = LlamaForCausalLM(AutoConfig.from_pretrained("."))
device_map = {"model.embed_tokens": "cpu", "model.layers": "disk", "model.norm": "cpu"}
device_map |= {"model.rotary_emb": "cpu", "lm_head": "cpu"}
dispatch_model(model, device_map, offload_dir="offloaded", main_device="cpu")
"""


@pytest.mark.complete
def test_a_run_beside_it(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(config).parent
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    words = [sys.executable, "-m", "tensortrail", "trace", "--directory", "run", "program.py"]
    done = subprocess.run(words, cwd=folder, env=dict(os.environ), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    code, out, _ = run(capsys, config, "--gpu", "1GB", "--run", str(folder / "run"))
    assert code == 0
    assert "in the run: model.layers was declared on disk and is on disk; here on gpu 0" in out
    assert "in the run: lm_head was declared on cpu and is on cpu; here on gpu 0" in out
