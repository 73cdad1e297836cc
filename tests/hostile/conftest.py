"""One project to attack for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from .attacked import Attacked


@pytest.fixture
def attacked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Attacked:
    return Attacked(tmp_path, capsys, monkeypatch)
