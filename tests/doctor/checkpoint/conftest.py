"""Checkpoints without a fault."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of them, in every format. Tests change copies."""
    from tests.doctor.checkpoint.written import write_all

    folder = tmp_path_factory.mktemp("whole")
    write_all(folder)
    return folder
