"""The call that put a tensor where it is not needed, with the device that is."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("libcst")

from tests.rules.mending import mended
from tests.rules.recorded import record, watched

GPU = "import torch\ngpu = torch.arange(6., device='cuda').view(2, 3)\n"
MADE = {
    "ones": ("torch.ones(2, 3)", 'torch.ones(2, 3, device="cuda:0")'),
    "a list": (
        "torch.tensor([[1.0, 2, 3]], dtype=torch.float)",
        'torch.tensor([[1.0, 2, 3]], dtype=torch.float, device="cuda:0")',
    ),
    "read from a file": ("torch.load(path)", 'torch.load(path, map_location="cuda:0")'),
}


@pytest.mark.parametrize(("made", "placed"), MADE.values(), ids=MADE)
def test_the_device_is_given_where_it_was_made(tmp_path: Path, made: str, placed: str) -> None:
    source = f"{GPU}path = folder + '/x'\ntorch.save(torch.ones(2, 3), path)\n"
    source += f"there = {made}\nsum = there + gpu"
    seen = watched(tmp_path, f"{source}  # flagged\n", "DEV502", rehearse="cuda")
    after = mended(seen)
    assert f"there = {placed}\n" in after
    (tmp_path / "again").mkdir()
    assert record(tmp_path / "again", after, rehearse="cuda")[2] is None


def test_a_module_is_moved_by_hand(tmp_path: Path) -> None:
    source = f"{GPU}layer = torch.nn.Linear(3, 3)\nlayer(gpu)  # flagged\n"
    (setting,) = watched(tmp_path, source, "DEV502", rehearse="cuda").only.settings
    assert (setting.call, setting.name, setting.value) == ("to", "device", '"cuda:0"')
    assert setting.at is None
    assert "is used with tensors on cuda:0 at line 4" in setting.why


@pytest.mark.parametrize(
    "there",
    [
        "torch.ones(2, 3, device='cpu')",
        "torch.ones(2, 3).cuda().cpu()",
        "torch.ones(2, 3) * 2",
        "torch.load(path, map_location='cpu')",
    ],
)
def test_what_somebody_decided_or_nobody_knows(tmp_path: Path, there: str) -> None:
    source = f"{GPU}path = folder + '/x'\ntorch.save(torch.ones(2, 3), path)\n"
    source += f"there = {there}\nsum = there + gpu  # flagged\n"
    assert not watched(tmp_path, source, "DEV502", rehearse="cuda").only.settings


def test_two_devices_leave_it_open(tmp_path: Path) -> None:
    source = f"{GPU}there = torch.ones(2, 3)\n"
    source += "torch.where(there > 0, gpu, gpu.to('cuda:1'))  # flagged\n"
    assert not watched(tmp_path, source, "DEV502", rehearse="cuda:2").only.settings
