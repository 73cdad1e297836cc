"""DEV535, `number-as-device`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severities_in_project

NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR
NUMBER = (
    "import torch\n\n\ndef ones(x: torch.Tensor):\n"
    "    return torch.ones(2, device=x.get_device()) + x\n"
)


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ("print(ones(rows.cuda()))\n", NOTE),
        ('device = "cuda" if gpu else "cpu"\nprint(ones(rows.to(device)))\n', WARNING),
        ('parser.add_argument("--no-cuda")\nprint(ones(rows))\n', WARNING),
        (
            'rows = torch.load(path, map_location=torch.device("cpu"))\nprint(ones(rows.cuda()))\n',
            NOTE,
        ),
    ],
)
@pytest.mark.usefixtures("as_the_rule_says")
def test_a_number_where_there_always_is_a_gpu(tmp_path: Path, run: str, expected: Severity) -> None:
    files = {"shapes.py": NUMBER, "run.py": f"from net.shapes import ones\n\n{run}"}
    assert severities_in_project(tmp_path, files, "DEV535") == [expected]
