"""DEV511, `cached-device-tensor`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity

KEPT = (
    "import functools\n\nimport torch\n\n\n@functools.lru_cache\ndef mask(n: int):\n"
    "    return torch.ones(n, device=torch.cuda.current_device())\n\n\n"
    "def main(rank):\n    {first}\n    return mask(3)\n"
)


@pytest.mark.parametrize(
    ("first", "expected"),
    [("torch.cuda.set_device(rank)", Severity.NOTE), ("print(rank)", Severity.WARNING)],
)
def test_a_cache_of_a_process_with_one_gpu(first: str, expected: Severity) -> None:
    assert severity("DEV511", KEPT.format(first=first)) is expected
