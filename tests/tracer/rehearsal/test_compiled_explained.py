"""A mismatch inside of a compiled function is explained, and the trail goes on around it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import warm

pytest.importorskip("torch")

SCRIPT = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = torch.nn.Embedding(100, 16), torch.nn.Linear(16, 100)

    def forward(self, ids):
        return self.head(self.embed(ids).relu())

model = torch.compile(Model().to("cuda"))
ids = torch.randint(0, 100, (4, 8))
loss = model(ids.to("cuda")).sum()
loss.backward()
print("trained", model.embed.weight.grad.device)
model(ids)
"""


def test_what_met_in_compiled_code_is_explained(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    ran = warm.run(["-m", "tensortrail", "trace", "--rehearse", "cuda", "train.py"], tmp_path)
    assert ran.returncode == 1
    assert ran.stdout == "trained cuda:0\n"
    assert "TorchRuntimeError: Tensor device mismatch" in ran.stderr
    told = " ".join(ran.stderr.partition("tensortrail: what was where")[2].split())
    assert "torch.nn.functional.embedding at train.py:17 was given" in told
    assert "input cpu int64 4x8 ids made at train.py:13, torch.randint" in told
    assert "weight cuda:0 float32 100x16 model._orig_mod.embed.weight moved cpu -> cuda:0" in told
    assert ran.stderr.count("inductor makes no kernels in a rehearsal") == 1
    assert "triton" not in ran.stderr
