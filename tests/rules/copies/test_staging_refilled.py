"""XFR615, `staging-refilled`: pinned memory that is written before its copy was made."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.recorded import SIMULATED, runs_without_findings, watched

CODE = "XFR615"


SOURCE = """\
import torch
staging = torch.empty(4, 8, pin_memory=True)
for n in range(2):
    staging.fill_(n)  # flagged
    x = staging.to("cuda", non_blocking=True)
"""


@pytest.mark.parametrize("sends", ["x.copy_(staging, non_blocking=True)", ""])
def test_a_pinned_buffer_is_written_before_it_was_sent(tmp_path: Path, sends: str) -> None:
    source = SOURCE
    if sends:
        source = source.replace('x = staging.to("cuda", non_blocking=True)', sends)
        source = source.replace("for n", 'x = torch.empty(4, 8, device="cuda")\nfor n')
    seen = watched(tmp_path, source, CODE, rehearse=SIMULATED)
    assert "before its copy to cuda:0, made by" in seen.only.message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("non_blocking=True)", "non_blocking=True)\n    torch.cuda.synchronize()"),
        ("non_blocking=True)", "non_blocking=True)\n    x.sum().item()"),
        (", pin_memory=True", ""),
        (", non_blocking=True", ""),
        ("staging.fill_(n)", "staging = torch.full((4, 8), float(n), pin_memory=True)"),
    ],
)
def test_a_buffer_that_is_waited_for_or_made_anew(tmp_path: Path, old: str, new: str) -> None:
    source = SOURCE.replace("  # flagged", "").replace(old, new)
    runs_without_findings(tmp_path, source, CODE, rehearse="cuda")
