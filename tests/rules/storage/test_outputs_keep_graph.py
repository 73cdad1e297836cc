"""STO214, `outputs-keep-graph`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity


@pytest.mark.parametrize(
    ("model", "expected"),
    [("model.eval()", Severity.WARNING), ("model.eval().requires_grad_(False)", None)],
)
def test_a_model_whose_weights_need_no_gradient(model: str, expected: Severity | None) -> None:
    source = (
        "import torch\n\n\ndef lengths(model: torch.nn.Module, loader):\n"
        f"    {model}\n    found = []\n    for x in loader:\n        found.append(model(x))\n"
        "    return torch.cat(found)\n"
    )
    assert severity("STO214", source) is expected
