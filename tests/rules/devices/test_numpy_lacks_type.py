"""NumPy is given a tensor of a number type that it does not have."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.recorded import runs_without_findings, watched

CODE = "DEV615"


def test_results_of_a_converted_model(tmp_path: Path) -> None:
    source = """\
    import torch
    model = torch.nn.Linear(8, 4).to("cuda", torch.bfloat16)
    rows = torch.ones(2, 8, device="cuda", dtype=torch.bfloat16)
    features = model(rows).detach().cpu()
    print(features.numpy().shape)  # flagged
    """
    seen = watched(tmp_path, source, CODE, rehearse="cuda")
    assert seen.only.message == "NumPy has no bfloat16, the type of `features`"
    assert "features.float().numpy()" in seen.fixed
    runs_without_findings(tmp_path, seen.fixed, CODE, rehearse="cuda")


def test_a_conversion_that_numpy_asks_for(tmp_path: Path) -> None:
    source = """\
    import numpy
    import torch
    rows = torch.ones(3).to(torch.float8_e4m3fn)
    numpy.asarray(rows)  # flagged
    """
    assert "float8_e4m3fn" in watched(tmp_path, source, CODE).only.message


def test_types_that_numpy_has(tmp_path: Path) -> None:
    source = """\
    import torch
    for kind in (torch.float16, torch.int8, torch.bool):
        torch.ones(2).to(kind).numpy()
    """
    assert not watched(tmp_path, source, CODE).found
