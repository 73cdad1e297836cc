"""Weights that are saved as one, but lie in different files. Upstream writes them cut, silently."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

for _name in ("torch", "accelerate", "transformers.modeling_utils"):
    pytest.importorskip(_name)

from tensortrail.findings import Severity  # noqa: E402
from tests.real.hf.models import JOINED, MODELS, program  # noqa: E402
from tests.rules.recorded import watched  # noqa: E402

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]
MIXES = ('{"": "disk"}', '{"embeddings": "cpu", "layers": "disk"}')
CUT = 'model.save_pretrained(folder + "/again", max_shard_size="100KB")'
LOADS = 't.NomicBertModel.from_pretrained(folder + "/again")'


def rows(folder: Path, weight: str) -> list[int]:
    """How long the weight is in each file that has it."""
    safetensors = pytest.importorskip("safetensors")
    found = []
    for file in sorted(folder.glob("*.safetensors")):
        with safetensors.safe_open(file, "pt") as opened:
            if weight in opened.keys():  # noqa: SIM118
                found.append(opened.get_slice(weight).get_shape()[0])
    return found


@pytest.mark.parametrize("device_map", MIXES)
def test_a_cut_group_is_told_with_its_files_and_the_size_that_works(
    tmp_path: Path, device_map: str
) -> None:
    seen = watched(tmp_path, program("NomicBert", CUT + "  # flagged", device_map), "SHD402")
    finding = seen.only
    assert finding.severity is Severity.ERROR
    target = re.match(r"`([\w.]+)` is made of", finding.message)
    assert target is not None
    assert target[1].endswith(".attn.Wqkv.weight")
    told = dict(re.findall(r"`(\S+_proj\.weight)` in (\S+\.safetensors)", finding.message))
    assert {name.split(".")[-2] for name in told} == {"q_proj", "k_proj", "v_proj"}
    assert len(set(told.values())) > 1
    written = rows(tmp_path / "again", target[1])
    assert len(written) == len(set(told.values()))
    assert max(written) < 192

    (size, original) = finding.settings
    assert (size.library, size.name, size.where) == (
        "transformers", "max_shard_size", "save_pretrained",
    )  # fmt: skip
    assert (original.name, original.value) == ("save_original_format", "False")


def test_without_the_setting_the_checkpoint_does_not_load(tmp_path: Path) -> None:
    seen = watched(tmp_path, program("NomicBert", f"{CUT}  # flagged\n{LOADS}"), "SHD402")
    assert "ignore_mismatched_sizes" in str(seen.error)


@pytest.mark.parametrize("setting", [0, 1])
def test_with_the_setting_the_checkpoint_loads_and_nothing_is_told(
    tmp_path: Path, setting: int
) -> None:
    seen = watched(tmp_path, program("NomicBert", CUT + "  # flagged"), "SHD402")
    told = seen.only.settings[setting]
    limit = "" if told.name == "max_shard_size" else 'max_shard_size="100KB", '
    mended = f'model.save_pretrained(folder + "/again", {limit}{told.name}={told.value})'
    again = tmp_path / "mended"
    again.mkdir()
    assert not watched(again, program("NomicBert", f"{mended}\n{LOADS}"), "SHD402").found


def test_the_nearest_limits_on_both_sides_are_told(tmp_path: Path) -> None:
    told = watched(tmp_path, program("NomicBert", CUT + "  # flagged"), "SHD402").only.settings[0]
    said = re.fullmatch(
        r"bytes: the nearest limit below '100KB' that keeps every group of this model whole, in "
        r"\d+ files; the nearest above is (\d+), in \d+ files",
        told.why,
    )
    assert said is not None
    below, above = int(told.value), int(said[1])
    assert below < 100_000 < above
    for limit in (below, below + 1, above - 1, above):
        again = tmp_path / str(limit)
        again.mkdir()
        cuts = below < limit < above
        save = CUT.replace('"100KB"', str(limit)) + "  # flagged" * cuts
        assert bool(watched(again, program("NomicBert", save), "SHD402").found) is cuts


@pytest.mark.parametrize("model", [name for name in MODELS if name not in JOINED])
def test_models_whose_weights_are_not_joined_are_not_told(tmp_path: Path, model: str) -> None:
    seen = watched(tmp_path, program(model, CUT), "SHD402")
    index = json.loads((tmp_path / "again" / "model.safetensors.index.json").read_text())
    assert len(set(index["weight_map"].values())) > 1
    assert not seen.found


def test_a_model_that_is_not_offloaded_is_converted_whole(tmp_path: Path) -> None:
    whole = 'made.save_pretrained(folder + "/again", max_shard_size="100KB")'
    assert not watched(tmp_path, program("NomicBert", f"{whole}\n{LOADS}"), "SHD402").found
