"""Weights that accelerate offloaded, used without the module they belong to."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

for _name in ("torch", "accelerate", "transformers.modeling_utils"):
    pytest.importorskip(_name)

from tensortrail.findings import Severity  # noqa: E402
from tensortrail.rules import Did  # noqa: E402
from tests.real.hf.models import program  # noqa: E402
from tests.rules.mending import mended  # noqa: E402
from tests.rules.recorded import record, watched  # noqa: E402

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]
MIXED = '{"model.embed_tokens": "cpu", "model.layers.0": "cpu", "model.layers.1": "disk",'
MIXED += ' "model.layers.2": "disk", "model.norm": "cpu", "model.rotary_emb": "cpu",'
MIXED += ' "lm_head": "disk"}'
RUN = "import torch\nids = torch.tensor([[1, 2, 3]])\nout = model(ids)\n"
READ = "model.lm_head.weight.tolist()"
ALIGNED = """\
from accelerate.utils import align_module_device
with align_module_device(model.lm_head):
    """


@pytest.mark.parametrize("device_map", ['{"": "disk"}', MIXED])
@pytest.mark.parametrize("before", ["", RUN])
def test_a_weight_read_outside_of_its_module_is_told(
    tmp_path: Path, device_map: str, before: str
) -> None:
    then = f"{before}{READ}  # flagged"
    seen = watched(tmp_path, program("Llama", then, device_map), "OFF105")
    assert seen.error is not None
    assert seen.only.severity is Severity.ERROR
    assert (
        "`model.lm_head.weight`, which is on meta: accelerate.AlignDevicesHook" in seen.only.message
    )
    assert "brings it to cpu only while model.lm_head itself is called" in seen.only.message
    assert seen.only.evidence["kept in"] == str(tmp_path / "source" / "model.safetensors")
    maps = [each.name for each in seen.only.settings]
    assert maps == (["device_map"] if "lm_head" in device_map else [])
    assert "with align_module_device(model.lm_head):" in seen.fixed


def test_the_device_map_that_leaves_it_there(tmp_path: Path) -> None:
    seen = watched(tmp_path, program("Llama", f"{RUN}{READ}  # flagged", MIXED), "OFF105")
    setting = seen.only.settings[0]
    wanted = ast.literal_eval(setting.value)
    assert wanted == ast.literal_eval(MIXED) | {"lm_head": "cpu"}
    assert setting.why == "keeps it on cpu, which takes 16.4 KB there"
    assert setting.at is not None
    assert setting.at.line == 4
    (tmp_path / "again").mkdir()
    unmarked = mended(seen).replace("  # flagged", "")
    assert not watched(tmp_path / "again", unmarked, "OFF105").found


def test_a_weight_that_another_operation_takes_silently_is_told(tmp_path: Path) -> None:
    then = f"{RUN}torch.nn.functional.linear(torch.ones(1, 64), model.lm_head.weight)  # flagged"
    seen = watched(tmp_path, program("Llama", then), "OFF105")
    assert "torch.nn.functional.linear" in seen.only.message


@pytest.mark.parametrize("then", [RUN, RUN + ALIGNED + READ, RUN + "model.lm_head.weight.shape"])
def test_running_aligning_and_asking_for_the_shape_is_fine(tmp_path: Path, then: str) -> None:
    assert not watched(tmp_path, program("Llama", then), "OFF105").found


def test_results_are_those_without_the_recording(tmp_path: Path) -> None:
    same = RUN + "model.eval(); made.eval()\nwith torch.no_grad():\n"
    same += "    assert torch.equal(made(ids).logits, model(ids).logits)"
    assert record(tmp_path, program("Llama", same, MIXED))[2] is None


def test_each_weight_is_named_brought_and_left(tmp_path: Path) -> None:
    _, timeline, error = record(tmp_path, program("Llama", RUN))
    assert error is None
    events = [e for e in timeline.events(Did.HOOK) if e.facts.get("module") == "lm_head"]
    ops = [e.op.rpartition(".")[2] for e in events]
    assert ops == ["init_hook", "pre_forward", "post_forward"]
    assert [e.storage.device for e in events if e.storage] == ["meta", "cpu", "meta"]
    (read,) = [e for e in timeline.events(Did.LOAD) if e.facts.get("key") == "lm_head.weight"]
    assert read.facts["path"] == str(tmp_path / "source" / "model.safetensors")
