"""A writer that is given placeholders of a model whose hooks have the data."""

from __future__ import annotations

from pathlib import Path

import pytest

for _name in ("torch", "accelerate", "transformers.modeling_utils"):
    pytest.importorskip(_name)

from tests.real.hf.models import program  # noqa: E402
from tests.rules.mending import mended  # noqa: E402
from tests.rules.recorded import watched  # noqa: E402

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]
WITHOUT_A_MAP = """\
from accelerate import disk_offload
disk_offload(made, folder + "/weights")
made.save_pretrained(folder + "/again")  # flagged
"""
COLLECTED = """\
from accelerate import disk_offload
import accelerate.utils.modeling
disk_offload(made, folder + "/weights")
made.save_pretrained(folder + "/again", state_dict={})
type(made).from_pretrained(folder + "/again")
"""


def test_the_hook_and_where_it_has_the_data_are_told(tmp_path: Path) -> None:
    then = 'import torch\ntorch.save(model.state_dict(), folder + "/model.pt")  # flagged'
    finding = watched(tmp_path, program("Llama", then), "SHD405").only
    source = tmp_path / "source" / "model.safetensors"
    assert "gets their shapes and no data" in finding.message
    assert "; the hook on `" in finding.message
    assert finding.message.endswith(f" left it there, and has the data in {source}")
    assert finding.evidence["hook"] == "accelerate.AlignDevicesHook"
    (setting,) = finding.settings
    assert setting.value == "get_state_dict_offloaded_model(model)"


def test_the_state_dict_is_brought_by_what_the_setting_gives(tmp_path: Path) -> None:
    pytest.importorskip("libcst")
    then = 'import torch\ntorch.save(model.state_dict(), folder + "/model.pt")  # flagged\n'
    after = mended(watched(tmp_path, program("Llama", then), "SHD405"))
    assert "\ntorch.save(get_state_dict_offloaded_model(model), folder" in after
    again = tmp_path / "mended"
    again.mkdir()
    then = """
saved = torch.load(folder + "/model.pt")
for name, weight in made.state_dict().items():
    assert torch.equal(saved[name], weight), name
"""
    unmarked = after.replace("  # flagged", "")
    assert not watched(again, unmarked + then, "SHD405").found


def test_a_dict_that_is_made_by_hand_is_told_by_hand(tmp_path: Path) -> None:
    then = "import torch\nstate = model.state_dict()\n"
    then += 'torch.save({"model": state}, folder + "/model.pt")  # flagged'
    (setting,) = watched(tmp_path, program("Llama", then), "SHD405").only.settings
    assert (setting.name, setting.at) == ("get_state_dict_offloaded_model", None)


def test_a_save_that_does_not_know_of_the_hooks_has_a_setting(tmp_path: Path) -> None:
    finding = watched(tmp_path, program("Llama", WITHOUT_A_MAP), "SHD405").only
    assert "cannot be written" in finding.message
    assert finding.evidence["hook"] == "accelerate.AlignDevicesHook"
    (setting,) = finding.settings
    assert (setting.name, setting.call) == ("state_dict", "save_pretrained")
    assert setting.value == "get_state_dict_offloaded_model(made)"
    assert "KB of memory" in setting.why
    again = tmp_path / "mended"
    again.mkdir()
    collected = COLLECTED.replace("{}", setting.value).replace(
        "import accelerate.utils.modeling", setting.imports
    )
    assert not watched(again, program("Llama", collected), "SHD405").found


def test_adapters_that_have_no_data_anywhere_have_no_setting(tmp_path: Path) -> None:
    """peft puts the adapters of an offloaded model on meta, where nothing ever fills them."""
    pytest.importorskip("peft")
    then = """\
import peft
config = peft.LoraConfig(target_modules=["q_proj"], r=2)
adapted = peft.get_peft_model(model, config)
adapted.save_pretrained(folder + "/adapter")  # flagged
"""
    seen = watched(tmp_path, program("Llama", then), "SHD405")
    assert seen.error is not None
    assert "put there by" in seen.only.message
    assert not seen.only.settings
