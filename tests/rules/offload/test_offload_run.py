"""Offload rules, watching real programs. Meta stands for the device that should be freed into."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.findings import Confidence
from tests.rules.recorded import watched


@pytest.mark.parametrize(
    ("holder", "told"),
    [
        ("kept = model.weight.detach()", "['kept']"),
        ("kept = [model.weight.data]", "the list `kept`"),
        ("kept = model.state_dict()", "the OrderedDict `kept`"),
        ("kept = (lambda w: lambda: w)(model.weight.view(-1))", "a closure"),
    ],
)
def test_something_still_holds_the_weights(tmp_path: Path, holder: str, told: str) -> None:
    seen = watched(
        tmp_path,
        f"""\
        import torch
        model = torch.nn.Linear(1000, 1000)
        {holder}
        model.to("meta")  # flagged
        """,
        "OFF108",
    )
    finding = seen.only
    assert "`Linear` went from cpu to meta, but 4.0 MB of the 4.0 MB it left" in finding.message
    assert told in finding.message
    assert finding.confidence is Confidence.HIGH
    assert finding.evidence["still held"] == "4.0 MB"
    assert "2: Linear.weight made on cpu by torch.empty" in seen.steps
    assert "4: Linear.weight moved as a module from" in seen.steps
    assert ("the list" in finding.message) == told.startswith("the list")


@pytest.mark.parametrize(
    "program",
    [
        "model.to('meta')",
        "kept = model.bias.detach(); model.to('meta')",
        "kept = model.weight.detach().clone(); model.to('meta')",
        "kept = model.weight.detach(); model.double()",
        "kept = model.weight.detach(); model.to('cpu')",
        "model.to('meta'); kept = list(model.parameters()); model.to_empty(device='cpu')",
        "model = torch.nn.Linear(10, 10); kept = model.weight.detach(); model.to('meta')",
    ],
)
def test_offloads_that_free_what_they_should(tmp_path: Path, program: str) -> None:
    source = f"import torch\nmodel = torch.nn.Linear(1000, 1000)\n{program}\n"
    assert not watched(tmp_path, source, "OFF108").found
