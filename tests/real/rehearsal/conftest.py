"""Two simulated GPUs of 4 GiB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("torch")


@pytest.fixture
def gpus() -> Iterator[Any]:
    from tensortrail.tracer.rehearsal.spec import parse_spec
    from tensortrail.tracer.rehearsal.stage import Rehearsal

    with Rehearsal(parse_spec("cuda:2x4GiB")) as rehearsal:
        yield rehearsal
