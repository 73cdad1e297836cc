"""Messages that speak of mixed devices and of missing values, of many versions of torch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tensortrail.rules.devices.shared.in_runs.errors import MIXED
from tensortrail.rules.shared.failures import NO_VALUES

TRACER = Path(__file__).parents[2] / "tracer" / "explaining"
SAMPLES = [json.loads(line) for line in (TRACER / "error-samples.jsonl").open(encoding="utf-8")]
UNRELATED = [
    json.loads(line) for line in (TRACER / "unrelated-messages.jsonl").open(encoding="utf-8")
]
MIXING = (
    "embedding-on-another-device", "conv-weight-on-another-device", "compiled-graph-mixes-devices",
    "meta-tensor-meets-real-tensor",
)  # fmt: skip
VALUELESS = ("meta-tensor-copied", "module-moved-off-meta", "value-read-from-meta-tensor")


def messages(*causes: str) -> list[str]:
    """Whole messages: fragments have no type."""
    return [each["message"] for each in SAMPLES if each["cause"] in causes and each["type"]]


@pytest.mark.parametrize("message", messages(*MIXING))
def test_mixed_devices(message: str) -> None:
    assert MIXED.search(message)
    assert not NO_VALUES.search(message)


@pytest.mark.parametrize("message", messages(*VALUELESS))
def test_missing_values(message: str) -> None:
    assert NO_VALUES.search(message)


def test_there_are_samples() -> None:
    assert len(messages(*MIXING)) >= 4
    assert len(messages(*VALUELESS)) >= 3


def test_unrelated_messages() -> None:
    texts = [each["message"] for each in UNRELATED]
    assert texts
    assert not [text for text in texts if NO_VALUES.search(text)]
