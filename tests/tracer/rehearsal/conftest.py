"""Simulated GPUs for tests that ask for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture
def two_gpus() -> Iterator[None]:
    yield from _simulated("cuda:2x1GiB")


@pytest.fixture
def two_devices() -> Iterator[None]:
    yield from _simulated("cuda:2")


@pytest.fixture
def one_device() -> Iterator[None]:
    yield from _simulated("cuda:1")


def _simulated(devices: str) -> Iterator[None]:
    pytest.importorskip("torch")
    from tensortrail.tracer.rehearsal.devices.spec import parse_spec
    from tensortrail.tracer.rehearsal.rehearsal import Rehearsal

    with Rehearsal(parse_spec(devices)):
        yield
