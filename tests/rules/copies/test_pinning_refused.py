"""Memory of a simulated GPU that is to be pinned: by the program, and by a DataLoader."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.findings import Severity
from tests.rules.recorded import runs_without_findings, watched

LOADED = """\
import torch
from torch.utils.data import DataLoader

images = torch.ones(4, 3).to("cuda")
loader = DataLoader(images, batch_size=2, pin_memory=True)
batches = list(loader)  # flagged
"""


def test_a_tensor_that_was_moved_before(tmp_path: Path) -> None:
    program = """\
        import torch
        x = torch.ones(3).to("cuda")
        x.pin_memory()  # flagged
        """
    seen = watched(tmp_path, program, "XFR606", rehearse="cuda")
    assert seen.only.message == (
        "only memory of the CPU can be pinned: `x` is on cuda:0, put there by `Tensor.to` at "
        "program.py:2"
    )
    assert seen.only.severity is Severity.ERROR
    assert "cannot pin 'torch.cuda.FloatTensor'" in str(seen.error)


def test_batches_of_a_loader(tmp_path: Path) -> None:
    seen = watched(tmp_path, LOADED, "XFR606", rehearse="cuda")
    assert "`pin_memory=True` of the DataLoader pins each batch" in seen.only.message
    (setting,) = seen.only.settings
    assert (setting.name, setting.value) == ("pin_memory", "False")
    mended = LOADED.replace("pin_memory=True", f"{setting.name}={setting.value}")
    runs_without_findings(tmp_path, mended, "XFR606", rehearse="cuda")


def test_one_that_the_program_handles_is_a_note(tmp_path: Path) -> None:
    program = """\
        import torch
        x = torch.ones(3, device="cuda")
        try:
            x.pin_memory()  # flagged
        except RuntimeError:
            x = x.cpu()
        """
    assert watched(tmp_path, program, "XFR606", rehearse="cuda").only.severity is Severity.NOTE
