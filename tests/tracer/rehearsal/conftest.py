"""Two simulated GPUs for tests that ask for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture
def two_gpus() -> Iterator[None]:
    pytest.importorskip("torch")
    from tensortrail.tracer.rehearsal.devices.spec import parse_spec
    from tensortrail.tracer.rehearsal.rehearsal import Rehearsal

    with Rehearsal(parse_spec("cuda:2x1GiB")):
        yield
