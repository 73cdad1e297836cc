"""`tensortrail settings` on real saves of transformers: the patched script loads what it saves."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

for _name in ("torch", "accelerate", "transformers.modeling_utils", "libcst"):
    pytest.importorskip(_name)

from tests import warm  # noqa: E402
from tests.real.hf.models import program  # noqa: E402

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]
CUT = 'model.save_pretrained(folder + "/again", max_shard_size="100KB")\n'
OPTIONS = 'options = {"max_shard_size": "100KB"}\n'
CUT_BY_OPTIONS = 'model.save_pretrained(\n    folder + "/again",\n    **options,\n)\n'
LOADS = 'again = t.NomicBertModel.from_pretrained(folder + "/again")\n'
SAME = """\
import torch
ids = torch.tensor([[1, 2, 3]])
with torch.no_grad():
    assert torch.equal(made.eval()(ids)[0], again.eval()(ids)[0])
"""


def tensortrail(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return warm.run(["-m", "tensortrail", *arguments], folder)


def test_a_load_that_fails_names_the_save_that_cut_the_weights(tmp_path: Path) -> None:
    head = f"folder = {str(tmp_path)!r}\n"
    (tmp_path / "save.py").write_text(head + program("NomicBert", CUT + LOADS))
    failed = tensortrail(tmp_path, "trace", "--directory", "run", "save.py")
    assert "ignore_mismatched_sizes" in failed.stderr
    told = failed.stderr.partition("tensortrail: what was where")[2]
    assert "cause    SHD402" in told
    assert "max_shard_size=" in told
    assert "ignore_mismatched_sizes" not in told, "it hides what the save did"
    assert "RUN101" not in told


@pytest.mark.parametrize(
    "save",
    [
        pytest.param(CUT, id="argument", marks=pytest.mark.complete),
        pytest.param(CUT_BY_OPTIONS, id="dict", marks=pytest.mark.complete),
    ],
)
def test_the_patched_script_saves_a_checkpoint_that_loads(tmp_path: Path, save: str) -> None:
    script = tmp_path / "save.py"
    head = f"folder = {str(tmp_path)!r}\n{OPTIONS if save is CUT_BY_OPTIONS else ''}"
    script.write_text(head + program("NomicBert", save + LOADS + SAME))
    failed = tensortrail(tmp_path, "trace", "--directory", "run", "save.py")
    assert failed.returncode == 1
    assert "ignore_mismatched_sizes" in failed.stderr

    told = tensortrail(tmp_path, "settings", "run", "--select", "SHD402")
    assert told.returncode == 1
    assert told.stdout.startswith("# SHD402 save.py:")
    assert "that keeps every group of this model whole" in told.stdout
    assert "#   or transformers save_original_format=False" in told.stdout
    patch = subprocess.run(
        ["patch", "-p0"], cwd=tmp_path, input=told.stdout, text=True, capture_output=True
    )
    assert patch.returncode == 0, patch.stdout
    assert "100KB" not in script.read_text()

    mended = tensortrail(tmp_path, "trace", "--directory", "mended", "save.py")
    assert mended.returncode == 0, mended.stderr
    found = tensortrail(tmp_path, "report", "mended", "--format", "json")
    assert not [each for each in json.loads(found.stdout) if each["code"] == "SHD402"]
