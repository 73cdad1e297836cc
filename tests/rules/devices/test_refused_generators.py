"""DEV512 in a run: random numbers of a device, asked of a generator of another one."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.recorded import runs_without_findings, watched

CODE = "DEV512"
DRAW = 'x = torch.randn(2, 3, generator=seeded, device="cuda")  # flagged\n'


@pytest.mark.parametrize(
    ("made", "mended"),
    [
        ("torch.Generator().manual_seed(0)", 'torch.Generator("cuda").manual_seed(0)'),
        ('torch.Generator(device="cpu")', 'torch.Generator(device="cuda")'),
        ('torch.Generator("cpu")', 'torch.Generator("cuda")'),
        ("torch.manual_seed(0)", 'torch.Generator("cuda").manual_seed(0)'),
    ],
)
def test_a_generator_of_the_cpu(made: str, mended: str, tmp_path: Path) -> None:
    program = f"import torch\nseeded = {made}\n{DRAW}"
    seen = watched(tmp_path, program, CODE, rehearse="cuda")
    said = "`torch.randn` draws on `cuda`, but `seeded`, made at line 2, is on the CPU"
    assert seen.only.message == said
    assert f"seeded = {mended}\n" in seen.fixed
    runs_without_findings(tmp_path, seen.fixed, CODE, rehearse="cuda")


def test_a_generator_that_the_function_is_handed(tmp_path: Path) -> None:
    program = f"import torch\n\ndef noise(seeded):\n    {DRAW}\nnoise(torch.Generator())\n"
    seen = watched(tmp_path, program, CODE, rehearse="cuda")
    assert "but `seeded` is on the CPU" in seen.only.message
    assert [fix.edits for fix in seen.only.fixes] == [()]


def test_a_generator_of_the_device(tmp_path: Path) -> None:
    program = f'import torch\nseeded = torch.Generator("cuda")\n{DRAW}'.replace("  # flagged", "")
    assert not watched(tmp_path, program, CODE, rehearse="cuda").found


def test_a_loader_that_shuffles_on_the_default_device(tmp_path: Path) -> None:
    program = (
        "import torch\nfrom torch.utils.data import DataLoader\n"
        'torch.set_default_device("cuda")\n'
        "loader = DataLoader(torch.arange(4), batch_size=2, shuffle=True)\n"
        "for batch in loader:  # flagged\n    pass\n"
    )
    seen = watched(tmp_path, program, CODE, rehearse="cuda")
    assert "the DataLoader made at line 4 shuffles with a generator on the CPU" in seen.only.message
    assert 'shuffle=True, generator=torch.Generator(device="cuda"))' in seen.fixed
    runs_without_findings(tmp_path, seen.fixed, CODE, rehearse="cuda")
