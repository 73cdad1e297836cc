"""Under the traceback of a save that failed stands what the findings of the run say of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

for _name in ("torch", "accelerate", "transformers.modeling_utils"):
    pytest.importorskip(_name)

import tensortrail  # noqa: E402
from tests.real.hf.models import made  # noqa: E402

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]


def explained(folder: Path, model: str, target: str, limit: str) -> str:
    whole: Any = made(model)
    whole.save_pretrained(folder / "source", max_shard_size="100KB")
    offloaded = type(whole).from_pretrained(
        folder / "source", device_map={"": "disk"}, offload_folder=str(folder / "offload")
    )
    run = tensortrail.trace(folder / "run")
    with pytest.raises((OSError, RuntimeError)), run:
        offloaded.save_pretrained(folder / target, max_shard_size=limit)
    return run.explanation


def test_files_that_are_gone(tmp_path: Path) -> None:
    told = explained(tmp_path, "Llama", "source", "1MB")
    source = tmp_path / "source"
    assert f"cause    SHD407 This save has removed {source}" in told
    assert f"save_directory='{source}-resaved'" in told
    assert "Fetch the missing file" not in told


def test_weights_that_are_apart(tmp_path: Path) -> None:
    told = explained(tmp_path, "Ernie4_5_VLMoe", "again", "100KB")
    assert "behind it  ValueError" in told
    assert "cause    SHD402 `model.layers.1.mlp.experts" in told
    assert "max_shard_size=" in told


def test_another_failure_of_a_save_keeps_its_explanation(tmp_path: Path) -> None:
    model = made("Llama")
    run = tensortrail.trace(tmp_path / "run")
    with pytest.raises(AttributeError), run:
        model.save_pretrained(tmp_path / "again", state_dict={"weight": object()})
    assert "SHD" not in run.explanation
