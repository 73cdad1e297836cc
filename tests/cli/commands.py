"""Commands of tensortrail as a test calls them: in its own process."""

from __future__ import annotations

import pytest

from tensortrail.cli import main

BAD = 'def f(t):\n    return t.weight.device == "meta"\n'
"""What `check` reports, and mends, as DEV501."""
NOTED = "import torch\n\ndef f(p, device):\n    return torch.load(p).to(device)\n\ng = f\n"
"""What it reports as a note, DEV506."""


def outcome(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """The exit code of the command, and what it printed to standard output and standard error."""
    capsys.readouterr()
    code = main(list(arguments))
    printed = capsys.readouterr()
    return code, printed.out, printed.err
