"""DEV503, `numpy-without-cpu`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity


@pytest.mark.parametrize(("library", "expected"), [("paddle", None), ("torch", Severity.ERROR)])
def test_tensors_of_another_library(library: str, expected: Severity | None) -> None:
    source = f"""
    import {library}

    def counted(inputs):
        return inputs["rows"].cuda(0).numpy().sum()
    """
    assert severity("DEV503", source) is expected


OTHER = (
    "import torch\nimport warp\n\n\ndef as_array(x: torch.Tensor | warp.array, device):\n"
    "    if isinstance(x, {cls}):\n        return x.numpy()\n    return x.to(device)\n"
)


@pytest.mark.parametrize(
    ("cls", "expected"), [("warp.array", None), ("torch.Tensor", Severity.NOTE)]
)
def test_an_array_of_another_library(cls: str, expected: Severity | None) -> None:
    assert severity("DEV503", OTHER.format(cls=cls)) is expected


KNOWN = (
    "import torch\n\n\ndef most(rows{given}):\n    device = {made}\n"
    "    best = torch.zeros(len(rows), device='cuda')\n    if device {test}:\n"
    "        return best.numpy()\n    return best\n"
)


@pytest.mark.parametrize(
    ("given", "made", "test", "expected"),
    [
        ("", "'cuda'", "== 'cpu'", None),
        ("", "'cuda'", "!= 'cuda'", None),
        ("", "'cuda'", "== 'cuda'", Severity.ERROR),
        (", name", "name", "== 'cpu'", Severity.ERROR),
        (", name='cuda'", "name", "== 'cpu'", Severity.ERROR),
    ],
)
def test_nothing_comes_to_the_branch_of_another_device(
    given: str, made: str, test: str, expected: Severity | None
) -> None:
    assert severity("DEV503", KNOWN.format(given=given, made=made, test=test)) is expected
