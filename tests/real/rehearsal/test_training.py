"""A plain training script gives under the rehearsal what it gives on the CPU."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests import warm

pytest.importorskip("torch")

pytestmark = pytest.mark.real
SCRIPT = Path(__file__).with_name("training.py")
REHEARSED = ["-m", "tensortrail", "trace", "--rehearse", "cuda"]


def told(folder: Path, *options: str) -> tuple[float, str]:
    """The last loss, and all that was printed."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = warm.run([*options, str(SCRIPT)], folder, env=env)
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    found = re.search(r"loss (\S+) on", text)
    assert found is not None, text
    return float(found[1]), text


@pytest.mark.complete
def test_autocast_scaler_workers_pinned_batches_and_a_resumed_checkpoint(tmp_path: Path) -> None:
    expected, plain = told(tmp_path)
    assert "on cpu\n" in plain
    loss, rehearsed = told(tmp_path, *REHEARSED)
    assert "on cuda:0\n" in rehearsed
    assert loss == pytest.approx(expected, rel=0.02)  # bfloat16 there, float16 here
