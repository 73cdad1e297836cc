"""DEV598, `random-state-on-device`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity

STATE = (
    "import torch\n\n\ndef resume(path, rank):\n    if rank == -1:\n        place = None\n"
    "    else:\n        place = {place}\n    held = torch.load(path, map_location=place)\n"
    "    torch.set_rng_state(held['rng'])\n"
)


@pytest.mark.parametrize(
    ("place", "expected"),
    [("{'cuda:0': f'cuda:{rank}'}", None), ("f'cuda:{rank}'", Severity.WARNING)],
)
def test_a_map_that_leaves_the_cpu_as_it_is(place: str, expected: Severity | None) -> None:
    assert severity("DEV598", STATE.replace("{place}", place)) is expected
