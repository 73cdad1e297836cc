"""XFR601, `read-before-sync`, by what callers of a function have where."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severities_in_project

OWN = """
import torch

def packed(dones: torch.Tensor):
    lengths, order = torch.sort(dones.nonzero()[:, 0], descending=True)
    on_cpu = lengths.to(device="cpu", non_blocking=True)
    return int(on_cpu[0].item()), order
"""


@pytest.mark.usefixtures("as_the_rule_says")
@pytest.mark.parametrize(
    ("given", "expected"),
    [("dones.detach().to(device='cpu')", []), ("dones.detach()", [Severity.ERROR])],
)
def test_what_callers_have_on_the_cpu(tmp_path: Path, given: str, expected: list[Severity]) -> None:
    main = (
        f"import torch\nfrom net.own import packed\n\ndef run(dones):\n    return packed({given})\n"
    )
    assert severities_in_project(tmp_path, {"own.py": OWN, "main.py": main}, "XFR601") == expected
