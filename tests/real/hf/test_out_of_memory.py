"""A simulated GPU that is too small for a real model of transformers: the explanation says by how
much, who lies there, and with which device map it is enough."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

for _name in ("torch", "accelerate", "transformers.modeling_utils"):
    pytest.importorskip(_name)

from tests.real.hf.test_settings import tensortrail  # noqa: E402

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]
LAYERS = 8
ON_GPU = {"model.embed_tokens": 0, "model.rotary_emb": 0, "model.norm": 0, "lm_head": 0}
ON_GPU |= {f"model.layers.{number}": 0 for number in range(LAYERS)}
PROGRAM = f"""\
import torch, transformers as t
made = t.LlamaForCausalLM(t.LlamaConfig(hidden_size=512, intermediate_size=1024,
    num_attention_heads=4, num_key_value_heads=4, vocab_size=64, max_position_embeddings=64,
    num_hidden_layers={LAYERS}, tie_word_embeddings=False))
made.save_pretrained("saved")
model = t.LlamaForCausalLM.from_pretrained("saved", device_map=MAP)
cache = torch.empty(1980, 1 << 20, dtype=torch.uint8, device="cuda")
with torch.no_grad():
    model(torch.tensor([[1, 2, 3]], device="cuda"))
"""


@pytest.mark.complete
def test_the_map_of_the_explanation_is_enough(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PROGRAM.replace("MAP", repr(ON_GPU)))
    trace = ("trace", "--rehearse", "cuda:1x2GiB", "script.py")
    failed = tensortrail(tmp_path, *trace)
    assert failed.returncode == 1
    missing = re.search(
        r"memory ran out: 1\.93 GiB on cuda:0, where .+: ([\d.]+) MiB is missing", failed.stderr
    )
    assert missing is not None, failed.stderr
    assert re.search(r"filled +[\d.]+ MiB in all: [\d.]+ MiB weights", failed.stderr)

    setting = re.search(r"device_map=(\{.+?\}) \(from_pretrained, script.py:6\)", failed.stderr)
    assert setting is not None, failed.stderr
    wanted = ast.literal_eval(setting[1])
    moved = [name for name, place in wanted.items() if place == "cpu"]
    assert moved
    assert moved == [f"model.layers.{n}" for n in range(LAYERS - len(moved), LAYERS)]

    told = tensortrail(tmp_path, "settings")
    assert told.returncode == 1
    assert told.stdout.startswith(
        "# OFF113 script.py:7: out-of-memory\n#   transformers device_map="
    )
    applied = tensortrail(tmp_path, "settings", "--apply")
    assert applied.returncode == 0
    patched = re.search(r"device_map=(\{.+?\})", script.read_text())
    assert patched is not None
    places = ast.literal_eval(patched[1])
    assert [name for name, place in places.items() if place == "cpu"] == moved
    assert places.keys() == wanted.keys()
    done = tensortrail(tmp_path, *trace)
    assert done.returncode == 0, done.stderr
