"""Which settings hold for a check, when they change while it runs."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.cli.server import requested
from tensortrail.editor.projects import Projects

RISKY = b"import torch\n\nx = torch.zeros(3)\nx.to('cuda')\n"


def test_settings_that_come_during_a_check_hold_for_the_next(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(folder: str, settings: Mapping[str, Any]) -> CheckRequest:
        if settings:
            begun.set()
            assert go_on.wait(60)
        return requested(folder, settings)

    projects = Projects(slow, pytest.fail)
    name = str(tmp_path / "risky.py")
    found: list[list[str]] = []

    def check() -> None:
        found.append([each.code for each in projects.check(name, RISKY)])

    check()
    projects.configure({"ignore": ["DEV504"]})
    old = threading.Thread(target=check)
    old.start()
    assert begun.wait(60)
    projects.configure({})
    go_on.set()
    old.join()
    check()
    assert found == [["DEV504"], [], ["DEV504"]]
