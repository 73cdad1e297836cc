"""The genuine MutableTorchTensorRTModule on a simulated GPU; its engine is a stand-in.

Its shared objects stay away: they need a GPU's driver."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests import warm
from tests.real.releases import release

HERE = Path(__file__).parent
pytestmark = [pytest.mark.real, pytest.mark.complete]
SCRIPT = """
import torch
from stand_in_engine import mutable_module

class LanguageModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(32, 8)
        self.head = torch.nn.Linear(8, 32)

    def get_input_embeddings(self):
        return self.embed

    def forward(self, embeds):
        return self.head(embeds)

ids = torch.tensor([[1, 2, 3]], device="cuda")
lm = LanguageModel().eval().cuda()
MutableTorchTensorRTModule = mutable_module()
engine = MutableTorchTensorRTModule(lm, strict=False)
embeds = lm.get_input_embeddings()(ids)
logits = engine(embeds)
assert torch.equal(logits, engine(embeds))
{then}
lm.get_input_embeddings()(ids)
print("the embedding is still on", lm.embed.weight.device)
"""
REFIT = "engine.load_state_dict(lm.state_dict())\nengine(embeds)  # refits"


def lines_of(script: str, text: str) -> int:
    return 1 + next(place for place, line in enumerate(script.splitlines()) if text in line)


def rehearsed(version: str, then: str, folder: Path) -> tuple[str, str]:
    """The script, and what the rehearsal printed."""
    script = SCRIPT.format(then=then)
    return script, printed(version, script, folder)


def printed(version: str, script: str, folder: Path) -> str:
    library = release(f"torch-tensorrt {version}")
    packages = folder / "site-packages"
    for source in [
        *library.rglob("*.py"),
        *library.rglob("*.json"),
    ]:  # the shared objects stay away
        target = packages / source.relative_to(library)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(source)
    (folder / "script.py").write_text(script)
    (folder / "stand_in_engine.py").symlink_to(HERE / "stand_in_engine.py")
    command = ["-m", "tensortrail", "trace", "--rehearse", "cuda", "script.py"]
    path = os.pathsep.join([str(packages), *sys.path])
    done = warm.run(command, folder, env={**os.environ, "PYTHONPATH": path})
    return done.stdout + done.stderr


def check_the_embedding_was_offloaded(script: str, told: str, by: str) -> None:
    line = lines_of(script, by)
    assert "got index is on cuda:0, different from other tensors on cpu" in told
    assert "weight  cpu     float32 32x8  lm.embed.weight" in told
    assert f"moved cuda:0 -> cpu at script.py:{line}" in told
    assert "in deallocate_module" in told
    assert "although `offload_module_to_cpu` is False" in told
    # What helps elsewhere is what the run had: the setting is the way back.
    assert 'argument device="cuda:0" (the module, after' in told
    assert "setting  torch_tensorrt" not in told


def test_compile_of_2_8_with_a_stand_in_engine_leaves_the_embedding_behind(tmp_path: Path) -> None:
    script, told = rehearsed("2.8.0", "", tmp_path)
    check_the_embedding_was_offloaded(script, told, "logits = engine(embeds)")


def test_compile_of_2_14_with_a_stand_in_engine_keeps_the_embedding(tmp_path: Path) -> None:
    _, told = rehearsed("2.14.0", "", tmp_path)
    assert "the embedding is still on cuda:0" in told


def test_refit_of_2_14_with_a_stand_in_engine_leaves_the_embedding_behind(tmp_path: Path) -> None:
    script, told = rehearsed("2.14.0", REFIT, tmp_path)
    check_the_embedding_was_offloaded(script, told, "engine(embeds)  # refits")
