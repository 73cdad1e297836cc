"""Parts of a tensor that are saved, and what of the whole they are."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity

CONVERTED = (
    "import torch\n\n\ndef convert(path, n, size):\n    table = torch.ones(n * size, 3)\n"
    "    kept = {{}}\n    for i in range(n):\n        kept[i] = {part}\n{save}"
)
AFTER = "    torch.save(kept, path)\n"
INSIDE = "        torch.save(kept, path)\n"


@pytest.mark.parametrize(
    ("part", "save", "expected"),
    [
        ("table[:size]", AFTER, Severity.WARNING),
        ("table[2:]", AFTER, Severity.NOTE),
        ("table[1:, :]", AFTER, Severity.NOTE),
        ("table[1000:]", AFTER, Severity.WARNING),
        ("table[i * size : (i + 1) * size]", AFTER, Severity.NOTE),
        ("table[i * size : (i + 1) * size]", INSIDE, Severity.WARNING),
    ],
)
def test_how_much_of_the_whole(part: str, save: str, expected: Severity) -> None:
    assert severity("STO207", CONVERTED.format(part=part, save=save)) is expected
