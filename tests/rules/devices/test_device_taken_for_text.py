"""DEV573, `device-taken-for-text`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity


@pytest.mark.parametrize(("library", "expected"), [("torch", Severity.ERROR), ("tensorflow", None)])
def test_tensors_of_another_library(library: str, expected: Severity | None) -> None:
    source = (
        f"import {library}\n\n\ndef place(x):\n"
        "    rows = x.unsqueeze(0).contiguous().expand_as(x)\n"
        "    device = x.device\n    return rows, 'cuda' in device\n"
    )
    assert severity("DEV573", source) is expected


@pytest.mark.parametrize(
    ("annotation", "asked", "expected"),
    [
        ("str | torch.device", "'cpu' in device", Severity.NOTE),
        ("Union[str, torch.device]", "device == 'cpu' or 'cpu' in device", Severity.NOTE),
        ("'torch.device'", "'cpu' in device", Severity.NOTE),
        ("str", "'cpu' in device", None),
        ("dict[str, torch.device]", "'cpu' in device", None),
        ("str | torch.device", "'cpu' in str(device)", None),
        ("str | torch.device", "isinstance(device, str) and 'cpu' in device", None),
    ],
)
def test_an_argument_that_is_annotated_as_a_device(
    annotation: str, asked: str, expected: Severity | None
) -> None:
    source = (
        "import torch\nfrom typing import Union\n\n\n"
        f"def is_slow(device: {annotation}, n):\n    return n > 3 and ({asked})\n"
    )
    assert severity("DEV573", source) is expected


def test_an_argument_that_is_made_a_text_first() -> None:
    source = (
        "import torch\n\n\ndef is_slow(device: str | torch.device):\n"
        "    device = str(device)\n    return 'cpu' in device\n"
    )
    assert severity("DEV573", source) is None
