"""SHD420, `best-round-not-copied`: how bad it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severities_in_project, severity

NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR


@pytest.mark.parametrize(
    ("value", "use", "expected"),
    [
        ("value.cpu()", "return best, kept", NOTE),
        ("value.cpu()", "model.load_state_dict(kept)", WARNING),
        ("value", "return best, kept", ERROR),
    ],
)
def test_what_is_given_back_may_be_dropped(value: str, use: str, expected: Severity) -> None:
    source = f"""
    def fit(model, optimizer, loader, measured):
        best, kept = 0.0, None
        for _ in range(10):
            for batch in loader:
                optimizer.zero_grad()
                model(batch).backward()
                optimizer.step()
            if measured(model) > best:
                best = measured(model)
                kept = {{name: {value} for name, value in model.state_dict().items()}}
        {use}
    """
    assert severity("SHD420", source) is expected


@pytest.mark.usefixtures("as_the_rule_says")
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("fit(Net(), SGD, [], len)", NOTE),
        ("best = fit(Net(), SGD, [], len)\nprint(best)", ERROR),
    ],
)
def test_what_no_caller_keeps(tmp_path: Path, call: str, expected: Severity) -> None:
    train = (
        "def fit(model, optimizer, loader, measured):\n    best, kept = 0.0, None\n"
        "    for _ in range(10):\n        for batch in loader:\n"
        "            model(batch).backward()\n            optimizer.step()\n"
        "        if measured(model) > best:\n            best = measured(model)\n"
        "            kept = model.state_dict()\n    return best, kept\n"
    )
    run = f"from net.models import Net, SGD\nfrom net.train import fit\n\n{call}\n"
    assert severities_in_project(tmp_path, {"train.py": train, "run.py": run}, "SHD420") == [
        expected
    ]
