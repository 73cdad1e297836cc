"""After a recording transformers and accelerate are as they were, whenever they were imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

for _name in ("torch", "accelerate", "transformers.modeling_utils"):
    pytest.importorskip(_name)

pytestmark = pytest.mark.real
BEFORE = "import torch, transformers.modeling_utils, accelerate"
PROGRAM = """\
import os, sys
from types import FunctionType
import tensortrail
from tensortrail.tracer.recording.begin import begin
{before}
running = begin(sys.argv[1])
{during}
from transformers.modeling_utils import PreTrainedModel
from accelerate.hooks import AlignDevicesHook
ours = os.path.dirname(tensortrail.__file__) + os.sep
def is_ours(value):
    value = getattr(value, "__func__", value)
    return isinstance(value, FunctionType) and value.__code__.co_filename.startswith(ours)
assert is_ours(PreTrainedModel.save_pretrained) and is_ours(AlignDevicesHook.pre_forward)
assert is_ours(vars(PreTrainedModel)["from_pretrained"])
running.stop()
assert not running.recorder.writer.fault, running.recorder.writer.fault
for name, module in sorted(sys.modules.items()):
    if name.startswith(("transformers", "accelerate", "safetensors", "diffusers")):
        for key, value in list(vars(module).items()):
            inner = vars(value).items() if isinstance(value, type) else ()
            for what, each in [(key, value), *inner]:
                if is_ours(each):
                    print(name, key, what)
"""


DIFFUSERS = "import diffusers.pipelines.pipeline_utils, diffusers.hooks.group_offloading"


@pytest.mark.parametrize(
    ("before", "during"),
    [
        pytest.param(BEFORE, "", marks=pytest.mark.complete),
        pytest.param("", BEFORE, marks=pytest.mark.complete),
        pytest.param(f"{BEFORE}; {DIFFUSERS}", "", marks=pytest.mark.complete),
        pytest.param("", f"{BEFORE}; {DIFFUSERS}", marks=pytest.mark.complete),
    ],
)
def test_nothing_of_ours_is_left(tmp_path: Path, before: str, during: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(before=before, during=during), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path / "run")],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
