"""Shard rules, watching real programs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.recorded import watched


def test_placeholders_are_saved(tmp_path: Path) -> None:
    seen = watched(
        tmp_path,
        """\
        import torch
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
        model[1].to("meta")
        for step in range(2):
            torch.save(model.state_dict(), folder + "/model.pt")  # flagged
        """,
        "SHD405",
    )
    finding = seen.only
    assert "`Sequential.1.weight` and `Sequential.1.bias` on meta" in finding.message
    assert "put there by `Tensor.to` at program.py:3" in finding.message
    assert dict(finding.evidence) == {"tensors": "2", "missing": "80 B"}
    assert "3: Sequential.1.weight moved cpu -> meta" in seen.steps


@pytest.mark.parametrize(
    "save",
    [
        "torch.save(whole.state_dict(), path)",
        "torch.save({k: v for k, v in half.state_dict().items() if not v.is_meta}, path)",
        "torch.save({k: v.shape for k, v in half.state_dict().items()}, path)",
        "half[1].to_empty(device='cpu'); torch.save(half.state_dict(), path)",
    ],
)
def test_data_is_saved(tmp_path: Path, save: str) -> None:
    watched(
        tmp_path,
        f"""\
        import torch
        whole = torch.nn.Linear(4, 4)
        half = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4, device="meta"))
        path = folder + "/model.pt"
        {save}
        """,
        "SHD405",
    )
