"""DEV552, `sibling-without-device`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("torch.FloatTensor(sizes)", Severity.WARNING),
        ("torch.cuda.FloatTensor(sizes)", None),
    ],
)
def test_a_type_of_cuda_is_on_a_gpu(made: str, expected: Severity | None) -> None:
    source = (
        "import torch\nimport torch.distributed as dist\n\n\ndef told(x, sizes, first):\n"
        f"    if first:\n        said = {made}\n        dist.broadcast(said, 0)\n    else:\n"
        "        said = torch.empty(2, device=torch.cuda.current_device())\n"
        "        dist.broadcast(said, 0)\n    return x.view(said)\n"
    )
    assert severity("DEV552", source) is expected
